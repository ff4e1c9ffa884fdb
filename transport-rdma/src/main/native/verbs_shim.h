// What mkernel needs of libibverbs, as plain functions: handles are integers, errors are returned as
// -errno (the JVM may change errno before Java could ask), and the hot calls work in batches.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Functions newer than version 1.1 of the library's symbols are not called, so that it loads wherever
// libibverbs.so.1 does.

// A transfer, prepared once. A put is `writes` RDMA writes, then 8 bytes of flag.
struct mkernel_transfer {
  uint64_t source;        // first byte here
  uint64_t target;        // first byte there
  uint64_t flag;          // where the flag lies there
  uint64_t source_pitch;  // bytes from a row to the next here
  uint64_t pitch;         // likewise there
  uint64_t row_bytes;
  uint64_t rows;
  uint64_t message_bytes;  // of one write at most
  uint32_t writes;
  uint32_t lkey;
  uint32_t rkey;
  uint32_t flag_rkey;
  uint64_t work_id;  // of each of its work requests
};

struct mkernel_completion {
  uint64_t work_id;
  uint32_t status;
  uint32_t vendor_error;
};

struct mkernel_device {
  int64_t max_qp;
  int64_t max_qp_wr;
  int64_t max_cqe;
  int64_t max_mr_size;
};

struct mkernel_port {
  int32_t state;
  int32_t active_mtu;
  int32_t lid;
  int32_t ethernet;
  int32_t gids;
  int32_t pkeys;
  int32_t grh_required;
  uint32_t max_message;
};

struct mkernel_connection {
  uint32_t port;
  uint32_t pkey_index;
  uint32_t mtu;
  uint32_t peer_qp;
  uint32_t psn;
  uint32_t peer_psn;
  uint32_t peer_lid;
  uint32_t global;
  uint32_t gid_index;
  uint32_t traffic_class;
  uint32_t service_level;
  uint32_t timeout;
  uint32_t retries;
  uint8_t peer_gid[16];
};

struct mkernel_event {
  int32_t type;
  int32_t element;  // number of the queue pair or of the port, -1 for the whole device
};

static inline int64_t mkernel_result(int error) { return error > 0 ? -error : error < 0 ? -errno : 0; }

static inline int64_t mkernel_handle(const void *object) {
  return object ? (int64_t)(uintptr_t)object : errno ? -errno : -ENODEV;
}

static inline int64_t mkernel_open(const char *name) {
  int count = 0;
  errno = 0;
  struct ibv_device **devices = ibv_get_device_list(&count);
  if (!devices) return mkernel_handle(NULL);
  struct ibv_context *context = NULL;
  int error = ENODEV;
  for (int i = 0; i < count; i++) {
    if (strcmp(ibv_get_device_name(devices[i]), name) == 0) {
      errno = 0;
      context = ibv_open_device(devices[i]);
      error = errno ? errno : ENODEV;
    }
  }
  ibv_free_device_list(devices);
  if (!context) return -error;
  int flags = fcntl(context->async_fd, F_GETFL);
  if (flags < 0 || fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK) < 0) {
    error = errno;
    ibv_close_device(context);
    return -error;
  }
  return mkernel_handle(context);
}

static inline int64_t mkernel_close(int64_t context) {
  return mkernel_result(ibv_close_device((struct ibv_context *)context));
}

static inline int64_t mkernel_query_device(int64_t context, int64_t to) {
  struct ibv_device_attr attr;
  memset(&attr, 0, sizeof attr);
  int error = ibv_query_device((struct ibv_context *)context, &attr);
  struct mkernel_device *out = (struct mkernel_device *)to;
  out->max_qp = attr.max_qp;
  out->max_qp_wr = attr.max_qp_wr;
  out->max_cqe = attr.max_cqe;
  out->max_mr_size = (int64_t)attr.max_mr_size;
  return mkernel_result(error);
}

static inline int64_t mkernel_query_port(int64_t context, int port, int64_t to) {
  struct ibv_port_attr attr;
  memset(&attr, 0, sizeof attr);
  int error = ibv_query_port((struct ibv_context *)context, (uint8_t)port, &attr);
  struct mkernel_port *out = (struct mkernel_port *)to;
  out->state = attr.state;
  out->active_mtu = attr.active_mtu;
  out->lid = attr.lid;
  out->ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
  out->gids = attr.gid_tbl_len;
  out->pkeys = attr.pkey_tbl_len;
  out->grh_required = (attr.flags & IBV_QPF_GRH_REQUIRED) != 0;
  out->max_message = attr.max_msg_sz;
  return mkernel_result(error);
}

// The partition key, or -errno.
static inline int64_t mkernel_query_pkey(int64_t context, int port, int index) {
  uint16_t network_order = 0;
  errno = 0;
  if (ibv_query_pkey((struct ibv_context *)context, (uint8_t)port, index, &network_order)) {
    return errno ? -errno : -EINVAL;
  }
  const uint8_t *bytes = (const uint8_t *)&network_order;
  return bytes[0] << 8 | bytes[1];
}

static inline int64_t mkernel_alloc_pd(int64_t context) {
  errno = 0;
  return mkernel_handle(ibv_alloc_pd((struct ibv_context *)context));
}

static inline int64_t mkernel_dealloc_pd(int64_t pd) {
  return mkernel_result(ibv_dealloc_pd((struct ibv_pd *)pd));
}

static inline int64_t mkernel_reg_mr(int64_t pd, int64_t address, int64_t bytes, int writable) {
  errno = 0;
  unsigned access = writable ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : 0;
  // The function behind the macro: the other one needs IBVERBS_1.8.
  return mkernel_handle((ibv_reg_mr)((struct ibv_pd *)pd, (void *)address, (size_t)bytes, (int)access));
}

static inline int mkernel_lkey(int64_t mr) { return (int)((struct ibv_mr *)mr)->lkey; }

static inline int mkernel_rkey(int64_t mr) { return (int)((struct ibv_mr *)mr)->rkey; }

static inline int64_t mkernel_dereg_mr(int64_t mr) {
  return mkernel_result(ibv_dereg_mr((struct ibv_mr *)mr));
}

static inline int64_t mkernel_create_cq(int64_t context, int entries) {
  errno = 0;
  return mkernel_handle(ibv_create_cq((struct ibv_context *)context, entries, NULL, NULL, 0));
}

static inline int64_t mkernel_destroy_cq(int64_t cq) {
  return mkernel_result(ibv_destroy_cq((struct ibv_cq *)cq));
}

static inline int64_t mkernel_create_qp(int64_t pd, int64_t cq, int depth) {
  struct ibv_qp_init_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.send_cq = (struct ibv_cq *)cq;
  attr.recv_cq = (struct ibv_cq *)cq;
  attr.cap.max_send_wr = (uint32_t)depth;
  attr.cap.max_recv_wr = 1;
  attr.cap.max_send_sge = 1;
  attr.cap.max_recv_sge = 1;
  attr.cap.max_inline_data = sizeof(uint64_t);
  attr.qp_type = IBV_QPT_RC;
  attr.sq_sig_all = 0;
  errno = 0;
  return mkernel_handle(ibv_create_qp((struct ibv_pd *)pd, &attr));
}

static inline int mkernel_qp_number(int64_t qp) { return (int)((struct ibv_qp *)qp)->qp_num; }

static inline int64_t mkernel_destroy_qp(int64_t qp) {
  return mkernel_result(ibv_destroy_qp((struct ibv_qp *)qp));
}

// From reset to ready: which of the three steps failed is told by `step`, 1 to 3.
static inline int64_t mkernel_connect_qp(int64_t qp, int64_t connection, int64_t step) {
  const struct mkernel_connection *c = (const struct mkernel_connection *)connection;
  int32_t *at = (int32_t *)step;
  struct ibv_qp_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.qp_state = IBV_QPS_INIT;
  attr.pkey_index = (uint16_t)c->pkey_index;
  attr.port_num = (uint8_t)c->port;
  attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  *at = 1;
  int error = ibv_modify_qp((struct ibv_qp *)qp, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (error) return mkernel_result(error);

  memset(&attr, 0, sizeof attr);
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = (enum ibv_mtu)c->mtu;
  attr.dest_qp_num = c->peer_qp;
  attr.rq_psn = c->peer_psn;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr.port_num = (uint8_t)c->port;
  attr.ah_attr.sl = (uint8_t)c->service_level;
  attr.ah_attr.dlid = (uint16_t)c->peer_lid;
  attr.ah_attr.is_global = (uint8_t)c->global;
  if (c->global) {
    memcpy(attr.ah_attr.grh.dgid.raw, c->peer_gid, sizeof c->peer_gid);
    attr.ah_attr.grh.sgid_index = (uint8_t)c->gid_index;
    attr.ah_attr.grh.hop_limit = 255;
    attr.ah_attr.grh.traffic_class = (uint8_t)c->traffic_class;
  }
  *at = 2;
  error = ibv_modify_qp((struct ibv_qp *)qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (error) return mkernel_result(error);

  memset(&attr, 0, sizeof attr);
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = (uint8_t)c->timeout;
  attr.retry_cnt = (uint8_t)c->retries;
  attr.rnr_retry = 7;
  attr.sq_psn = c->psn;
  attr.max_rd_atomic = 1;
  *at = 3;
  error = ibv_modify_qp((struct ibv_qp *)qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  return mkernel_result(error);
}

static inline int64_t mkernel_stop_qp(int64_t qp) {
  struct ibv_qp_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.qp_state = IBV_QPS_ERR;
  return mkernel_result(ibv_modify_qp((struct ibv_qp *)qp, &attr, IBV_QP_STATE));
}

enum { MKERNEL_BATCH = 16 };

// Posts work requests `first` to `first + count - 1` of a transfer, of which number `writes` is the
// flag. The flag asks for a completion; when it is not among them, the last one does. Returns how
// many were posted, or -errno when none was; fewer than `count` when the queue took no more.
static inline int64_t mkernel_post(int64_t qp, int64_t transfer, int first, int count,
                                   int64_t epoch) {
  const struct mkernel_transfer *t = (const struct mkernel_transfer *)transfer;
  const uint64_t per_row =
      t->writes == 0 ? 1 : (t->row_bytes + t->message_bytes - 1) / t->message_bytes;
  uint64_t flag = (uint64_t)epoch; // little endian, as this machine is
  struct ibv_send_wr work[MKERNEL_BATCH];
  struct ibv_sge part[MKERNEL_BATCH];
  int posted = 0;
  while (posted < count) {
    const int batch = count - posted < MKERNEL_BATCH ? count - posted : MKERNEL_BATCH;
    for (int i = 0; i < batch; i++) {
      const uint32_t number = (uint32_t)(first + posted + i);
      struct ibv_send_wr *w = &work[i];
      memset(w, 0, sizeof *w);
      w->wr_id = t->work_id;
      w->next = i + 1 < batch ? w + 1 : NULL;
      w->sg_list = &part[i];
      w->num_sge = 1;
      w->opcode = IBV_WR_RDMA_WRITE;
      if (number == t->writes) {
        part[i].addr = (uint64_t)(uintptr_t)&flag;
        part[i].length = sizeof flag;
        part[i].lkey = 0;
        w->send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
        w->wr.rdma.remote_addr = t->flag;
        w->wr.rdma.rkey = t->flag_rkey;
      } else {
        const uint64_t row = number / per_row;
        const uint64_t begin = number % per_row * t->message_bytes;
        const uint64_t rest = t->row_bytes - begin;
        part[i].addr = t->source + row * t->source_pitch + begin;
        part[i].length = (uint32_t)(rest < t->message_bytes ? rest : t->message_bytes);
        part[i].lkey = t->lkey;
        w->send_flags = posted + i + 1 == count ? IBV_SEND_SIGNALED : 0;
        w->wr.rdma.remote_addr = t->target + row * t->pitch + begin;
        w->wr.rdma.rkey = t->rkey;
      }
    }
    struct ibv_send_wr *bad = NULL;
    const int error = ibv_post_send((struct ibv_qp *)qp, work, &bad);
    if (error) {
      posted += bad >= work && bad < work + batch ? (int)(bad - work) : 0;
      return posted > 0 ? posted : mkernel_result(error);
    }
    posted += batch;
  }
  return posted;
}

// Reads up to `count` completions (at most MKERNEL_BATCH). Returns how many, or -errno.
static inline int64_t mkernel_poll(int64_t cq, int64_t to, int count) {
  struct ibv_wc found[MKERNEL_BATCH];
  const int most = count < MKERNEL_BATCH ? count : MKERNEL_BATCH;
  const int n = ibv_poll_cq((struct ibv_cq *)cq, most, found);
  if (n < 0) return -EIO;
  struct mkernel_completion *out = (struct mkernel_completion *)to;
  for (int i = 0; i < n; i++) {
    out[i].work_id = found[i].wr_id;
    out[i].status = found[i].status;
    out[i].vendor_error = found[i].vendor_err;
  }
  return n;
}

// Takes one event of the device. Returns 1, or 0 when there is none, or -errno.
static inline int64_t mkernel_event(int64_t context, int64_t to) {
  struct ibv_async_event event;
  if (ibv_get_async_event((struct ibv_context *)context, &event)) {
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -errno;
  }
  struct mkernel_event *out = (struct mkernel_event *)to;
  out->type = event.event_type;
  out->element = -1;
  switch (event.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      out->element = (int32_t)event.element.qp->qp_num;
      break;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
      out->element = event.element.port_num;
      break;
    default:
      break;
  }
  ibv_ack_async_event(&event);
  return 1;
}

static inline const char *mkernel_status(int status) {
  return ibv_wc_status_str((enum ibv_wc_status)status);
}

static inline const char *mkernel_event_name(int type) {
  return ibv_event_type_str((enum ibv_event_type)type);
}

static inline const char *mkernel_error(int error) { return strerror(error); }

// The structs above as the compiler lays them out: offsets of all fields, then the size, struct by
// struct; -1 after the last. A test compares them with Java's.
static inline int64_t mkernel_layout(int index) {
#define AT(type, field) (int64_t) offsetof(struct type, field)
  static const int64_t all[] = {
      AT(mkernel_transfer, source), AT(mkernel_transfer, target), AT(mkernel_transfer, flag),
      AT(mkernel_transfer, source_pitch), AT(mkernel_transfer, pitch),
      AT(mkernel_transfer, row_bytes), AT(mkernel_transfer, rows),
      AT(mkernel_transfer, message_bytes), AT(mkernel_transfer, writes),
      AT(mkernel_transfer, lkey), AT(mkernel_transfer, rkey), AT(mkernel_transfer, flag_rkey),
      AT(mkernel_transfer, work_id), sizeof(struct mkernel_transfer),
      AT(mkernel_completion, work_id), AT(mkernel_completion, status),
      AT(mkernel_completion, vendor_error), sizeof(struct mkernel_completion),
      AT(mkernel_device, max_qp), AT(mkernel_device, max_qp_wr), AT(mkernel_device, max_cqe),
      AT(mkernel_device, max_mr_size), sizeof(struct mkernel_device),
      AT(mkernel_port, state), AT(mkernel_port, active_mtu), AT(mkernel_port, lid),
      AT(mkernel_port, ethernet), AT(mkernel_port, gids), AT(mkernel_port, pkeys),
      AT(mkernel_port, grh_required), AT(mkernel_port, max_message), sizeof(struct mkernel_port),
      AT(mkernel_connection, port), AT(mkernel_connection, pkey_index),
      AT(mkernel_connection, mtu), AT(mkernel_connection, peer_qp), AT(mkernel_connection, psn),
      AT(mkernel_connection, peer_psn), AT(mkernel_connection, peer_lid),
      AT(mkernel_connection, global), AT(mkernel_connection, gid_index),
      AT(mkernel_connection, traffic_class), AT(mkernel_connection, service_level),
      AT(mkernel_connection, timeout), AT(mkernel_connection, retries),
      AT(mkernel_connection, peer_gid), sizeof(struct mkernel_connection),
      AT(mkernel_event, type), AT(mkernel_event, element), sizeof(struct mkernel_event),
  };
#undef AT
  const int count = (int)(sizeof all / sizeof all[0]);
  return index >= 0 && index < count ? all[index] : -1;
}
