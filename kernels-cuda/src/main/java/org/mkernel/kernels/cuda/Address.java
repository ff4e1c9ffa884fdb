package org.mkernel.kernels.cuda;

import org.bytedeco.javacpp.Pointer;

/** A number as a pointer, for the constructors of CUDA types. It owns nothing. */
final class Address extends Pointer {
  Address(long value) {
    super((Pointer) null);
    address = value;
  }
}
