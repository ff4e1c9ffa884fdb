package org.mkernel.transport.rdma;

/**
 * How a work request can end, by libibverbs' numbers: what it means and what to do. All but success
 * end the connection; those that follow the first are flushed.
 */
enum CompletionStatus {
  SUCCESS("done", ""),
  LOC_LEN_ERR(
      "a message is longer than the adapter takes", "report this with the operation's shapes"),
  LOC_QP_OP_ERR(
      "the adapter found its queue pair inconsistent",
      "look for adapter errors in the kernel's log; update firmware"),
  LOC_EEC_OP_ERR("the adapter found an end-to-end context inconsistent", "update firmware"),
  LOC_PROT_ERR(
      "memory here is not registered for what was asked",
      "keep operands allocated until their operation is closed"),
  WR_FLUSH_ERR(
      "the connection had already failed or was stopped", "look at the failure before this one"),
  MW_BIND_ERR("a memory window could not be bound", "report this"),
  BAD_RESP_ERR(
      "the peer's adapter gave an answer that makes no sense", "update firmware of both adapters"),
  LOC_ACCESS_ERR(
      "memory here may not be written", "keep operands allocated until their operation is closed"),
  REM_INV_REQ_ERR(
      "the peer's adapter refused the request as invalid",
      "let both ends run the same version; compare their MTU and port"),
  REM_ACCESS_ERR(
      "memory of the peer is not registered for what was asked: a wrong key or bounds",
      "keep the peer's operation open while this one runs; let both ends run the same version"),
  REM_OP_ERR(
      "the peer's adapter could not complete the request",
      "look for adapter errors in the kernel's log of the peer"),
  RETRY_EXC_ERR(
      "the peer did not acknowledge in time: it is gone, its link is down, or packets get lost",
      "look whether the peer lives and its port is up; ping its RDMA address with packets of the"
          + " path MTU; on lossy networks set rdma.timeout and rdma.retries higher"),
  RNR_RETRY_EXC_ERR("the peer was never ready to receive", "let both ends run the same version"),
  LOC_RDD_VIOL_ERR("a reliable datagram domain was violated", "report this"),
  REM_INV_RD_REQ_ERR("the peer refused a reliable datagram", "report this"),
  REM_ABORT_ERR("the peer aborted the request", "look at the peer's log"),
  INV_EECN_ERR("an end-to-end context number is invalid", "report this"),
  INV_EEC_STATE_ERR("an end-to-end context is in a wrong state", "report this"),
  FATAL_ERR("the adapter failed", "look for adapter errors in the kernel's log; reset the adapter"),
  RESP_TIMEOUT_ERR("the peer's answer did not come in time", "look whether the peer lives"),
  GENERAL_ERR(
      "the adapter reports an error without a name", "look for adapter errors in the kernel's log");

  /** How bad a status is. */
  enum Severity {
    NONE,
    /** The first of its connection: it says why. */
    FATAL,
    /** What was in flight behind it. */
    FLUSH
  }

  private final String meaning;
  private final String remedy;

  CompletionStatus(String meaning, String remedy) {
    this.meaning = meaning;
    this.remedy = remedy;
  }

  private static final CompletionStatus[] ALL = values();

  /** The status with a number; an unknown one is {@link #GENERAL_ERR}. */
  static CompletionStatus of(int code) {
    return code >= 0 && code < ALL.length ? ALL[code] : GENERAL_ERR;
  }

  Severity severity() {
    return switch (this) {
      case SUCCESS -> Severity.NONE;
      case WR_FLUSH_ERR -> Severity.FLUSH;
      default -> Severity.FATAL;
    };
  }

  String meaning() {
    return meaning;
  }

  String remedy() {
    return remedy;
  }
}
