package org.mkernel.transport.rdma;

/** What an adapter tells on its own, by libibverbs' numbers, and what that does to us. */
enum DeviceEvent {
  CQ_ERR(Effect.ADAPTER, "a completion queue overran"),
  QP_FATAL(Effect.QUEUE_PAIR, "a queue pair failed"),
  QP_REQ_ERR(Effect.QUEUE_PAIR, "the peer sent an invalid request"),
  QP_ACCESS_ERR(Effect.QUEUE_PAIR, "the peer asked for memory that it has no key for"),
  COMM_EST(Effect.NONE, "communication is established"),
  SQ_DRAINED(Effect.NONE, "a send queue is drained"),
  PATH_MIG(Effect.NOTED, "a path migrated"),
  PATH_MIG_ERR(Effect.NOTED, "a path did not migrate"),
  DEVICE_FATAL(Effect.ADAPTER, "the adapter failed"),
  PORT_ACTIVE(Effect.NOTED, "the port came up"),
  PORT_ERR(Effect.NOTED, "the port went down"),
  LID_CHANGE(Effect.NOTED, "the port's LID changed"),
  PKEY_CHANGE(Effect.NOTED, "the port's partition keys changed"),
  SM_CHANGE(Effect.NOTED, "the subnet manager changed"),
  SRQ_ERR(Effect.NONE, "a shared receive queue failed"),
  SRQ_LIMIT_REACHED(Effect.NONE, "a shared receive queue is low"),
  QP_LAST_WQE_REACHED(Effect.NONE, "a queue pair took its last receive"),
  CLIENT_REREGISTER(Effect.NOTED, "the subnet manager asks to register anew"),
  GID_CHANGE(Effect.NOTED, "the port's GIDs changed");

  /** What an event does. */
  enum Effect {
    NONE,
    /**
     * Is logged, and named by the failure that may follow: retries outlast a port that comes back.
     */
    NOTED,
    /** Ends the channel whose queue pair it names. */
    QUEUE_PAIR,
    /** Ends all channels of the adapter. */
    ADAPTER
  }

  private static final DeviceEvent[] ALL = values();

  private final Effect effect;
  private final String meaning;

  DeviceEvent(Effect effect, String meaning) {
    this.effect = effect;
    this.meaning = meaning;
  }

  /** The effect of the event with a number: an unknown one is noted. */
  static Effect effectOf(int type) {
    return type >= 0 && type < ALL.length ? ALL[type].effect : Effect.NOTED;
  }

  static String meaningOf(int type) {
    return type >= 0 && type < ALL.length ? ALL[type].meaning : "event " + type;
  }
}
