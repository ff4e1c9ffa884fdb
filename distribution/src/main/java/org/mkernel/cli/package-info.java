/** The commands of {@code mkernel}, their options, and the formats that they read and write. */
@NullMarked
package org.mkernel.cli;

import org.jspecify.annotations.NullMarked;
