/**
 * {@code mkernel doctor}: probes of the machine. A probe reads files, variables and what programs
 * print, all through {@link org.mkernel.cli.doctor.Machine}, and changes nothing.
 */
@NullMarked
package org.mkernel.cli.doctor;

import org.jspecify.annotations.NullMarked;
