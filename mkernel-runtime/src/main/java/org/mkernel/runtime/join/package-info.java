/**
 * How processes become a world: what the launcher said, and the rendezvous over TCP at which ranks
 * meet, prove that they know the secret, and stay in touch. It knows nothing of operations.
 */
@NullMarked
package org.mkernel.runtime.join;

import org.jspecify.annotations.NullMarked;
