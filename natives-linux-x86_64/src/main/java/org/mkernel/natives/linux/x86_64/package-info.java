/** The marker that makes this module, and with it the native libraries, resolve. */
@NullMarked
package org.mkernel.natives.linux.x86_64;

import org.jspecify.annotations.NullMarked;
