/**
 * Tensor files: {@code .npy} and safetensors, read from a mapped file and written row by row.
 * Headers are hostile until proved sound: every defect ends in a {@link
 * org.mkernel.api.UsageException} of one line, and nothing is ever allocated by a number that a
 * header states. What an operator does with the values belongs elsewhere.
 */
@NullMarked
package org.mkernel.cli.io;

import org.jspecify.annotations.NullMarked;
