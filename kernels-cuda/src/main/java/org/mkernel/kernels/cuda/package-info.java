/**
 * The CUDA device. {@code Driver} and the classes named {@code Cuda…} are a thin, checked layer
 * over the driver's API: addresses are plain numbers, and CUDA types appear in no signature that
 * another module could see.
 */
@NullMarked
package org.mkernel.kernels.cuda;

import org.jspecify.annotations.NullMarked;
