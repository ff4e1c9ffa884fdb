/**
 * The transport {@code rdma}. {@link org.mkernel.transport.rdma.RdmaTransport} finds adapters in
 * sysfs and answers for this machine; an opened {@link org.mkernel.transport.rdma.Adapter} gives
 * each operation a channel with registered memory and a queue pair for each peer. What depends on
 * libibverbs goes through {@link org.mkernel.transport.rdma.Verbs}; all else is plain Java and
 * tested without a device.
 */
@NullMarked
package org.mkernel.transport.rdma;

import org.jspecify.annotations.NullMarked;
