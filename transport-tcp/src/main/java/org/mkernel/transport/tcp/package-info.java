/** A wire over sockets: connections, frames, and the thread that receives. */
@NullMarked
package org.mkernel.transport.tcp;

import org.jspecify.annotations.NullMarked;
