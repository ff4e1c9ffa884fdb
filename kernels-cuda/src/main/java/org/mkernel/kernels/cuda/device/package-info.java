/** Device sources, which NVRTC compiles without any header of a toolkit. No Java belongs here. */
@NullMarked
package org.mkernel.kernels.cuda.device;

import org.jspecify.annotations.NullMarked;
