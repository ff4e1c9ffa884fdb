/** The entries, as resources named by digest, and the class that hands them out. */
@NullMarked
package org.mkernel.kernels.cubins;

import org.jspecify.annotations.NullMarked;
