package org.mkernel.runtime.join;

/** Types of frames. Those of the handshake are the same in every version. */
final class Message {
  static final byte HELLO = 1;
  static final byte CHALLENGE = 2;
  static final byte PROOF = 3;
  static final byte WELCOME = 4;
  static final byte REFUSAL = 5;

  /** From rank 0: all ranks are here. */
  static final byte READY = 6;

  /** To rank 0: the contribution of a rank to a round. */
  static final byte GATHER = 7;

  /** From rank 0: all contributions to a round. */
  static final byte RESULT = 8;

  /** Either way: the world is dead, and why. */
  static final byte ABORT = 9;

  /** Either way: still here. */
  static final byte HEARTBEAT = 10;

  /** To rank 0: this rank needs nothing more. From rank 0: nobody does. */
  static final byte LEAVE = 11;

  /** Either way: a question to all ranks. */
  static final byte QUESTION = 12;

  /** To rank 0: what a rank answers. */
  static final byte ANSWER = 13;

  /** From rank 0: what all ranks answered, as far as they did. */
  static final byte ANSWERS = 14;

  /** To rank 0: something to compare. */
  static final byte NOTE = 15;

  /** Payload of the longest frame before the handshake is done. */
  static final int MAX_HANDSHAKE = 1024;

  /** Payload of the longest frame after it. */
  static final int MAX_PAYLOAD = 64 << 20;

  private Message() {}
}
