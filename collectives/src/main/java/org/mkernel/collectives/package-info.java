/** Operations of mkernel: what they compute, their parameters, and how each is planned. */
@NullMarked
package org.mkernel.collectives;

import org.jspecify.annotations.NullMarked;
