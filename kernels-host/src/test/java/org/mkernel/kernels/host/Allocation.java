package org.mkernel.kernels.host;

import java.lang.reflect.Method;

/** What threads have allocated. By reflection, since the module under test reads no management. */
final class Allocation {
  private final Object bean;
  private final Method bytes;

  Allocation() throws ReflectiveOperationException {
    bean =
        Class.forName("java.lang.management.ManagementFactory")
            .getMethod("getThreadMXBean")
            .invoke(null);
    bytes =
        Class.forName("com.sun.management.ThreadMXBean")
            .getMethod("getThreadAllocatedBytes", long.class);
  }

  long of(Thread thread) throws ReflectiveOperationException {
    return (long) bytes.invoke(bean, thread.threadId());
  }
}
