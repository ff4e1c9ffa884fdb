package org.mkernel.transport.rdma;

import org.bytedeco.javacpp.annotation.Name;
import org.bytedeco.javacpp.annotation.NoException;
import org.bytedeco.javacpp.annotation.Platform;
import org.bytedeco.javacpp.annotation.Properties;

/**
 * The JavaCPP preset of libibverbs: what this transport uses and no more. Handles are addresses of
 * the library's objects; a negative result is {@code -errno}. Structs are those of {@code
 * verbs_shim.h}, which {@link Structs} lays out for Java. Loaded by {@link VerbsLibrary} only.
 */
@Properties(
    @Platform(
        value = "linux-x86_64",
        include = "verbs_shim.h",
        link = "ibverbs@.1",
        library = VerbsLibrary.NAME))
@NoException
final class Verbs {
  /** How many completions one poll reads at most. */
  static final int BATCH = 16;

  private Verbs() {}

  @Name("mkernel_open")
  static native long open(String device);

  @Name("mkernel_close")
  static native long close(long context);

  @Name("mkernel_query_device")
  static native long queryDevice(long context, long to);

  @Name("mkernel_query_port")
  static native long queryPort(long context, int port, long to);

  @Name("mkernel_query_pkey")
  static native long queryPkey(long context, int port, int index);

  @Name("mkernel_alloc_pd")
  static native long allocProtectionDomain(long context);

  @Name("mkernel_dealloc_pd")
  static native long freeProtectionDomain(long domain);

  @Name("mkernel_reg_mr")
  static native long register(long domain, long address, long bytes, int writable);

  @Name("mkernel_lkey")
  static native int localKey(long region);

  @Name("mkernel_rkey")
  static native int remoteKey(long region);

  @Name("mkernel_dereg_mr")
  static native long deregister(long region);

  @Name("mkernel_create_cq")
  static native long createCompletionQueue(long context, int entries);

  @Name("mkernel_destroy_cq")
  static native long destroyCompletionQueue(long queue);

  @Name("mkernel_create_qp")
  static native long createQueuePair(long domain, long completionQueue, int depth);

  @Name("mkernel_qp_number")
  static native int queuePairNumber(long pair);

  @Name("mkernel_destroy_qp")
  static native long destroyQueuePair(long pair);

  @Name("mkernel_connect_qp")
  static native long connect(long pair, long connection, long step);

  @Name("mkernel_stop_qp")
  static native long stop(long pair);

  @Name("mkernel_post")
  static native long post(long pair, long transfer, int first, int count, long epoch);

  @Name("mkernel_poll")
  static native long poll(long completionQueue, long to, int count);

  @Name("mkernel_event")
  static native long event(long context, long to);

  @Name("mkernel_status")
  static native String status(int status);

  @Name("mkernel_event_name")
  static native String eventName(int type);

  @Name("mkernel_error")
  static native String error(int error);

  @Name("mkernel_layout")
  static native long layout(int index);
}
