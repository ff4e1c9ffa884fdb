package org.mkernel.api.spi;

/**
 * A transfer as a wire prepares it once and posts it many times: {@code rows × rowBytes} from
 * memory here to memory of a peer, then the epoch as 64 bits, little endian, into a flag of that
 * peer. The flag is never seen before the bytes. Transfers of several epochs may raise one flag: it
 * goes up in the order of epochs, and whoever sees an epoch sees the bytes of all before it too.
 *
 * @param peer the rank that receives
 * @param source where the first row lies here
 * @param sourcePitch bytes from a row to the next here
 * @param span which of the peer's spans receives
 * @param offset where in it the first row goes
 * @param pitch bytes from a row to the next there
 * @param rows rows, 0 when only the flag is raised
 * @param rowBytes bytes of a row
 * @param flagOffset where in the peer's span 0 the flag lies; a multiple of 8
 */
public record Transfer(
    int peer,
    long source,
    long sourcePitch,
    int span,
    long offset,
    long pitch,
    long rows,
    long rowBytes,
    long flagOffset) {

  /**
   * The payload.
   *
   * @return bytes, without the flag
   */
  public long bytes() {
    return rows * rowBytes;
  }
}
