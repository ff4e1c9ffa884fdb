package org.mkernel.check;

import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.mkernel.api.DType;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.schedule.Role;

/**
 * What a {@link Simulator} takes for granted of the machine: rates of lanes and links, latencies,
 * and who shares what. Every rank has the same. A rate of 0 is no limit.
 *
 * @param name what it stands for
 * @param flopsPerSecond of one lane, by {@link #rateKey}; a kernel of another kind is counted by
 *     the bytes that it reads and writes
 * @param memoryBytesPerSecond bytes that one lane reads and writes in a second
 * @param putBytesPerSecond bytes that one lane puts into memory of its node in a second
 * @param taskNanos what every task costs its lane, whatever it does
 * @param raiseNanos from the end of a task until its own rank sees its signals
 * @param wake how late a lane sees a signal for which it waited
 * @param launchNanos from the end of an epoch on a rank until its lanes start the next
 * @param lanes how many lanes serve a role
 * @param host what ranks share on their hosts
 * @param mapped from a rank to all others of its node
 * @param wire between nodes
 * @param proxy what carries commands to the wire
 */
public record Machine(
    String name,
    Map<String, Double> flopsPerSecond,
    double memoryBytesPerSecond,
    double putBytesPerSecond,
    double taskNanos,
    double raiseNanos,
    Wake wake,
    double launchNanos,
    Lanes lanes,
    Host host,
    Link mapped,
    Wire wire,
    Proxy proxy) {

  /** Who shares the processors and the proxy of a process. */
  public enum Sharing {
    /** Nobody: each rank is a process. */
    RANK,
    /** The ranks of a node. */
    NODE,
    /** All ranks: an emulated world. */
    WORLD
  }

  /**
   * How late a lane sees a signal: a quarter of the time that it has waited, within bounds, as it
   * looks less often the longer it waits.
   *
   * @param leastNanos the lower bound
   * @param mostNanos the upper bound
   */
  public record Wake(double leastNanos, double mostNanos) {
    /** Checks the bounds. */
    public Wake {
      atLeast("wake", leastNanos, 0);
      atLeast("wake", mostNanos, leastNanos);
    }

    double after(double waitedNanos) {
      return Math.clamp(waitedNanos / 4, leastNanos, mostNanos);
    }
  }

  /**
   * Lanes of a rank.
   *
   * @param compute of a role that computes, unless named
   * @param other of another role, unless named
   * @param byRole of roles by name
   */
  public record Lanes(int compute, int other, Map<String, Integer> byRole) {
    /** Checks the numbers. */
    public Lanes {
      byRole = Map.copyOf(byRole);
      atLeast("lanes that compute", compute, 1);
      atLeast("other lanes", other, 1);
      byRole.forEach((role, count) -> atLeast("lanes." + role, count, 1));
    }

    int of(Role role) {
      return byRole.getOrDefault(role.name(), role.compute() ? compute : other);
    }
  }

  /**
   * What ranks share on a host.
   *
   * @param sharing which ranks are in one process
   * @param processors how many lanes and proxies of a process run at once, sharing them evenly; 0
   *     when each has a processor of its own
   * @param together how fast each goes when all processors are busy, of its speed alone, above 0
   *     and at most 1: less where processors share a core or memory
   */
  public record Host(Sharing sharing, int processors, double together) {
    /** Checks the figures. */
    public Host {
      atLeast("processors", processors, 0);
      if (!(together > 0 && together <= 1)) {
        throw new UsageException(
            "together of a machine is %s; above 0 and at most 1 is needed".formatted(together));
      }
    }
  }

  /**
   * A way for bytes, one put after another.
   *
   * @param bytesPerSecond its rate, 0 for no limit
   * @param latencyNanos from the last byte until its flag is seen
   */
  public record Link(double bytesPerSecond, double latencyNanos) {
    /** Checks the figures. */
    public Link {
      atLeast("bandwidth", bytesPerSecond, 0);
      atLeast("latency", latencyNanos, 0);
    }
  }

  /**
   * The network between nodes. A transfer takes the adapter of its sender, the link between the two
   * and the adapter of its receiver at the same time, each one transfer after another.
   *
   * @param sendBytesPerSecond what a rank sends to all peers
   * @param receiveBytesPerSecond what a rank receives from all peers
   * @param pairBytesPerSecond what a rank sends to one peer
   * @param latencyNanos from the last byte sent to its arrival, and from there back
   */
  public record Wire(
      double sendBytesPerSecond,
      double receiveBytesPerSecond,
      double pairBytesPerSecond,
      double latencyNanos) {
    /** Checks the figures. */
    public Wire {
      atLeast("bandwidth", sendBytesPerSecond, 0);
      atLeast("bandwidth", receiveBytesPerSecond, 0);
      atLeast("bandwidth", pairBytesPerSecond, 0);
      atLeast("latency", latencyNanos, 0);
    }
  }

  /**
   * The proxy of a process: one thing after another.
   *
   * @param commandNanos what a command costs it
   * @param latencyNanos how late it sees what comes while it rests
   * @param bytesPerSecond what it moves itself, as for an emulated wire; 0 when adapters do
   */
  public record Proxy(double commandNanos, double latencyNanos, double bytesPerSecond) {
    /** Checks the figures. */
    public Proxy {
      atLeast("proxy", commandNanos, 0);
      atLeast("proxy", latencyNanos, 0);
      atLeast("proxy", bytesPerSecond, 0);
    }
  }

  /** Checks the figures and copies the map. */
  public Machine {
    flopsPerSecond = Map.copyOf(flopsPerSecond);
    flopsPerSecond.forEach((key, rate) -> {
      if (!(rate > 0)) {
        throw new UsageException("the rate of %s is %s; it must be above 0".formatted(key, rate));
      }
    });
    atLeast("memory", memoryBytesPerSecond, 0);
    atLeast("put", putBytesPerSecond, 0);
    atLeast("task", taskNanos, 0);
    atLeast("raise", raiseNanos, 0);
    atLeast("launch", launchNanos, 0);
  }

  private static void atLeast(String what, double value, double least) {
    if (!(value >= least) || Double.isInfinite(value)) {
      throw new UsageException(
          "%s of a machine is %s; at least %s is needed".formatted(what, value, least));
    }
  }

  /**
   * The key of a rate.
   *
   * @param kind the kind of a kernel
   * @param dtype the type of its output
   * @return as {@code mkernel.gemm/bf16}
   */
  public static String rateKey(String kind, DType dtype) {
    return kind + "/" + dtype.label();
  }

  double rate(String kind, DType dtype) {
    Double rate = flopsPerSecond.get(rateKey(kind, dtype));
    if (rate == null) {
      throw new UsageException(
          "machine %s has no rate for %s in %s; it has %s: choose another type or machine"
              .formatted(name, kind, dtype.label(), new TreeMap<>(flopsPerSecond).keySet()));
    }
    return rate;
  }

  /**
   * An H200 for each rank, one process each. Measured: 805 TFLOP/s at 8192³ in 16 waves of tiles of
   * 128 × 256 on 128 of 132 multiprocessors, 1.4 µs from a signal to the first product of who
   * waits, 2 000 and 3 000 cycles to raise one on the device and across, 1.9 TB/s of copies. Given
   * by the design: 450 GB/s of a mapped link, 50 GB/s of a rank between nodes. Assumed: four lanes
   * for other roles, which fill the mapped link; 2 µs for the wire and for a command to reach the
   * proxy.
   *
   * @return the machine
   */
  public static Machine h200() {
    double gemm = 6.29e12;
    return new Machine(
        "h200",
        Map.of(rateKey(Kernel.GEMM, DType.BF16), gemm, rateKey(Kernel.GEMM, DType.F16), gemm),
        3.8e12 / 132,
        450e9 / 4,
        250,
        1_100,
        new Wake(1_400, 1_400),
        5_000,
        new Lanes(128, 4, Map.of()),
        new Host(Sharing.RANK, 0, 1),
        new Link(450e9, 1_700),
        new Wire(50e9, 50e9, 0, 2_000),
        new Proxy(100, 2_000, 0));
  }

  /**
   * The same with other bandwidth and latency between nodes.
   *
   * @param bytesPerSecond what a rank sends, and receives where receiving was limited
   * @param latencyNanos from the last byte sent to its arrival
   * @return the machine
   */
  public Machine withWire(double bytesPerSecond, double latencyNanos) {
    double receive = wire.receiveBytesPerSecond() == 0 ? 0 : bytesPerSecond;
    return with(
        host,
        lanes,
        mapped,
        new Wire(bytesPerSecond, receive, wire.pairBytesPerSecond(), latencyNanos),
        flopsPerSecond);
  }

  /**
   * The same with another link inside nodes.
   *
   * @param link the link of a rank
   * @return the machine
   */
  public Machine withMapped(Link link) {
    return with(host, lanes, link, wire, flopsPerSecond);
  }

  /**
   * The same with another number of lanes.
   *
   * @param role the name of a role
   * @param count its lanes on each rank, at least 1
   * @return the machine
   */
  public Machine withLanes(String role, int count) {
    Map<String, Integer> byRole = new HashMap<>(lanes.byRole());
    byRole.put(role, count);
    return with(
        host, new Lanes(lanes.compute(), lanes.other(), byRole), mapped, wire, flopsPerSecond);
  }

  /**
   * The same with another rate.
   *
   * @param key a {@link #rateKey}
   * @param rate floating-point operations that one lane does in a second
   * @return the machine
   */
  public Machine withRate(String key, double rate) {
    Map<String, Double> rates = new HashMap<>(flopsPerSecond);
    rates.put(key, rate);
    return with(host, lanes, mapped, wire, rates);
  }

  /**
   * The same on another host.
   *
   * @param shared what ranks share
   * @return the machine
   */
  public Machine withHost(Host shared) {
    return with(shared, lanes, mapped, wire, flopsPerSecond);
  }

  private Machine with(Host host, Lanes lanes, Link mapped, Wire wire, Map<String, Double> rates) {
    return new Machine(
        name,
        rates,
        memoryBytesPerSecond,
        putBytesPerSecond,
        taskNanos,
        raiseNanos,
        wake,
        launchNanos,
        lanes,
        host,
        mapped,
        wire,
        proxy);
  }
}
