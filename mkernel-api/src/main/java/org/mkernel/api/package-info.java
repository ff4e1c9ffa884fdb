/**
 * What an embedder calls: open {@link org.mkernel.api.MKernel}, join a {@link
 * org.mkernel.api.World}, and on each {@link org.mkernel.api.Rank} make {@link
 * org.mkernel.api.Tensor}s, prepare an {@link org.mkernel.api.Operation} once and launch it many
 * times. Every failure is an {@link org.mkernel.api.MKernelException}.
 */
@NullMarked
package org.mkernel.api;

import org.jspecify.annotations.NullMarked;
