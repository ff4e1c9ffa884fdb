package org.mkernel.runtime;

import java.lang.reflect.Method;

/** What a thread has allocated. By reflection, since the module under test reads no management. */
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

  long ofThisThread() throws ReflectiveOperationException {
    return (long) bytes.invoke(bean, Thread.currentThread().threadId());
  }
}
