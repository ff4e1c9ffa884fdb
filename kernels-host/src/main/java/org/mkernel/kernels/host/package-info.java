/**
 * Host device, host kernel set and shared-memory transport. JavaCPP types stay inside: they appear
 * in no signature that another module could see.
 */
@NullMarked
package org.mkernel.kernels.host;

import org.jspecify.annotations.NullMarked;
