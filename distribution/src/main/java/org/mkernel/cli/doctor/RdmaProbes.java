package org.mkernel.cli.doctor;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.BiConsumer;
import org.mkernel.cli.doctor.Finding.Evidence;

/** RDMA adapters: what the kernel shows of them in sysfs. */
final class RdmaProbes {
  private static final String UNSET = "0000:0000:0000:0000:0000:0000:0000:0000";

  /** What RoCE v2 adds to 4096 bytes, with room for every header. */
  private static final int MTU_FOR_4096 = 4096 + 96;

  /** Counters of packets that were lost, came out of order, or were sent again. */
  private static final Set<String> LOSSES =
      Set.of(
          "local_ack_timeout_err",
          "out_of_sequence",
          "packet_seq_err",
          "implied_nak_seq_err",
          "retry_exceeded_err",
          "rcvd_seq_err",
          "out_of_seq_request");

  /** Counters of a bad link. */
  private static final Set<String> LINK_FAULTS =
      Set.of("symbol_error", "link_downed", "link_error_recovery", "port_rcv_errors");

  private RdmaProbes() {}

  private static String name(String folder) {
    return folder.substring(folder.lastIndexOf('/') + 1);
  }

  /** A port that is up, as the folder that tells of it. */
  private record Port(String adapter, String folder, String where, boolean ethernet) {}

  private static List<Port> ports(Machine machine) {
    List<Port> ports = new ArrayList<>();
    for (String adapter : machine.adapters()) {
      for (String port : machine.list(adapter + "/ports", "[0-9]{1,3}")) {
        if (machine.read(port + "/state").value().endsWith("ACTIVE")) {
          boolean ethernet = machine.read(port + "/link_layer").value().equals("Ethernet");
          ports.add(
              new Port(adapter, port, "%s port %s".formatted(name(adapter), name(port)), ethernet));
        }
      }
    }
    return ports;
  }

  private static void eachPort(
      Machine machine, Findings out, boolean ethernetOnly, BiConsumer<Port, Findings> look) {
    List<Port> ports =
        ports(machine).stream().filter(port -> !ethernetOnly || port.ethernet()).toList();
    ports.forEach(port -> look.accept(port, out));
    if (ports.isEmpty()) {
      out.notApplicable(
          "no active%s port of an RDMA adapter".formatted(ethernetOnly ? " Ethernet" : ""));
    }
  }

  static void adapters(Machine machine, Findings out) {
    List<String> adapters = machine.adapters();
    if (adapters.isEmpty()) {
      List<String> cards =
          machine.list("/sys/bus/pci/devices", ".*").stream()
              .filter(device -> machine.read(device + "/vendor").value().equals("0x15b3"))
              .filter(device -> machine.read(device + "/class").value().startsWith("0x02"))
              .toList();
      if (cards.isEmpty()) {
        out.notApplicable(
            "no RDMA adapter: between nodes the transport is tcp",
            new Evidence("/sys/class/infiniband", "(empty)"));
      } else {
        out.warning(
            "%d network cards that could do RDMA are without its driver".formatted(cards.size()),
            "traffic between nodes goes over tcp, several times slower",
            "modprobe mlx5_ib ib_uverbs; in a container pass /dev/infiniband",
            new Evidence("/sys/class/infiniband", "(empty)"),
            machine.read(cards.getFirst() + "/vendor").evidence());
      }
      return;
    }
    for (String adapter : adapters) {
      adapter(machine, out, adapter);
    }
  }

  private static void adapter(Machine machine, Findings out, String adapter) {
    List<Evidence> states = new ArrayList<>();
    boolean active = false;
    for (String port : machine.list(adapter + "/ports", "[0-9]{1,3}")) {
      Reading state = machine.read(port + "/state");
      states.add(state.evidence());
      states.add(machine.read(port + "/phys_state").evidence());
      active |= state.value().endsWith("ACTIVE");
    }
    Evidence[] evidence = states.toArray(Evidence[]::new);
    if (!active) {
      out.error(
          "%s has no active port".formatted(name(adapter)),
          "a rank that this adapter falls to can't connect",
          "look at the cable and the switch port; InfiniBand needs a running subnet manager; or"
              + " leave it out with -o rdma.device=…",
          evidence);
      return;
    }
    String file =
        machine.list("/sys/class/infiniband_verbs", "uverbs[0-9]+").stream()
            .filter(verbs -> machine.read(verbs + "/ibdev").value().equals(name(adapter)))
            .map(verbs -> "/dev/infiniband/" + name(verbs))
            .findFirst()
            .orElse("");
    if (file.isEmpty() || !machine.exists(file)) {
      out.error(
          "%s can't be opened: its device file is missing".formatted(name(adapter)),
          "libibverbs works through it",
          "modprobe ib_uverbs; in a container pass /dev/infiniband",
          new Evidence(file.isEmpty() ? "/sys/class/infiniband_verbs" : file, "(not there)"));
      return;
    }
    if (!java.nio.file.Files.isReadable(machine.at(file))
        || !java.nio.file.Files.isWritable(machine.at(file))) {
      out.error(
          "%s may not be opened by this user".formatted(name(adapter)),
          "libibverbs reads and writes %s".formatted(file),
          "join the group that owns it, or chmod 666",
          new Evidence(file, "not readable and writable"));
      return;
    }
    out.ok("%s is up".formatted(name(adapter)), evidence);
  }

  static void addresses(Machine machine, Findings out) {
    eachPort(
        machine,
        out,
        false,
        (port, findings) -> {
          if (port.ethernet()) {
            gids(machine, findings, port);
          } else {
            lid(machine, findings, port);
          }
        });
  }

  private static void lid(Machine machine, Findings out, Port port) {
    Reading lid = machine.read(port.folder() + "/lid");
    Reading key = machine.read(port.folder() + "/pkeys/0");
    if (lid.value().matches("0x0+")) {
      out.error(
          "%s has no local address".formatted(port.where()),
          "no subnet manager has given it one",
          "start a subnet manager, as opensm, or the one of the switch",
          lid.evidence());
    } else if (key.value().matches("0x[0-7][0-9a-f]{3}")) {
      out.warning(
          "%s is a limited member of the partition at index 0".formatted(port.where()),
          "limited members do not reach one another",
          "choose a full membership with -o rdma.pkey=INDEX",
          key.evidence());
    } else {
      out.ok("%s has address %s".formatted(port.where(), lid.value()), lid.evidence());
    }
  }

  private static void gids(Machine machine, Findings out, Port port) {
    List<Evidence> table = new ArrayList<>();
    boolean usable = false;
    boolean ipv4 = false;
    boolean stale = false;
    for (String gid : machine.list(port.folder() + "/gids", "[0-9]{1,4}")) {
      String address = machine.read(gid).value();
      if (!address.matches("[0-9a-f]{4}(:[0-9a-f]{4}){7}") || address.equals(UNSET)) {
        continue;
      }
      String type = machine.read(port.folder() + "/gid_attrs/types/" + name(gid)).value();
      String net = machine.read(port.folder() + "/gid_attrs/ndevs/" + name(gid)).value();
      String state =
          net.matches("[^/]+") ? machine.read("/sys/class/net/" + net + "/operstate").value() : "";
      boolean down = state.equals("down");
      boolean local = (Integer.parseInt(address.substring(0, 4), 16) & 0xffc0) == 0xfe80;
      if (type.equals("RoCE v2") && !local) {
        stale |= down;
        usable |= !down;
        ipv4 |= !down && address.startsWith("0000:0000:0000:0000:0000:ffff:");
      }
      table.add(
          new Evidence(
              gid, "%s %s%s%s".formatted(address, type, down ? ", down: " : " ", net).strip()));
    }
    Evidence[] evidence = table.toArray(Evidence[]::new);
    if (!usable) {
      out.error(
          "%s has no GID that is routable with RoCE v2".formatted(port.where()),
          stale
              ? "the interface of those that it has is down: they are left from before"
              : "link-local addresses and RoCE v1 do not pass routers, and peers may have others",
          "bring its network interface up with an IPv4 or a global IPv6 address",
          evidence);
    } else {
      out.ok("%s is reached by %s".formatted(port.where(), ipv4 ? "IPv4" : "IPv6"), evidence);
    }
  }

  /** The network interfaces of a port. */
  private static Set<String> interfaces(Machine machine, Port port) {
    Set<String> names = new LinkedHashSet<>();
    for (String entry : machine.list(port.folder() + "/gid_attrs/ndevs", "[0-9]{1,4}")) {
      String name = machine.read(entry).value();
      if (name.matches("[^/]+")) {
        names.add(name);
      }
    }
    if (names.isEmpty()) {
      names.addAll(machine.list(port.adapter() + "/device/net"));
    }
    return names;
  }

  static void mtu(Machine machine, Findings out) {
    Set<Long> sizes = new TreeSet<>();
    List<Evidence> evidence = new ArrayList<>();
    for (Port port : ports(machine)) {
      for (String net : port.ethernet() ? interfaces(machine, port) : Set.<String>of()) {
        Reading mtu = machine.read("/sys/class/net/" + net + "/mtu");
        mtu.number()
            .ifPresent(size -> {
              sizes.add(size);
              evidence.add(mtu.evidence());
            });
      }
    }
    Evidence[] all = evidence.toArray(Evidence[]::new);
    String remedy =
        "ip link set dev NAME mtu 9000, alike on all nodes, and on every switch port in between";
    if (sizes.isEmpty()) {
      out.notApplicable("no active Ethernet port of an RDMA adapter");
    } else if (sizes.size() > 1) {
      out.error(
          "interfaces differ in MTU: " + sizes,
          "between ends that differ, large packets are dropped without a word if a switch is set to"
              + " the smaller one",
          remedy,
          all);
    } else if (sizes.iterator().next() < MTU_FOR_4096) {
      out.warning(
          "an MTU of %d".formatted(sizes.iterator().next()),
          "packets of RDMA are 1024 bytes instead of 4096: more of them, and less bandwidth",
          remedy,
          all);
    } else {
      out.ok("an MTU of %d".formatted(sizes.iterator().next()), all);
    }
  }

  static void congestion(Machine machine, Findings out) {
    eachPort(
        machine,
        out,
        true,
        (port, findings) -> {
          List<Evidence> evidence = new ArrayList<>();
          boolean on = false;
          for (String net : interfaces(machine, port)) {
            for (String role : new String[] {"roce_np", "roce_rp"}) {
              String folder = "/sys/class/net/%s/ecn/%s/enable".formatted(net, role);
              StringBuilder priorities = new StringBuilder();
              for (String priority : machine.list(folder, "[0-7]")) {
                if (machine.read(priority).value().equals("1")) {
                  priorities.append(name(priority));
                }
              }
              if (!machine.list(folder).isEmpty()) {
                evidence.add(new Evidence(folder, "on for priorities [%s]".formatted(priorities)));
                on |= !priorities.isEmpty();
              }
            }
          }
          Evidence[] all = evidence.toArray(Evidence[]::new);
          if (evidence.isEmpty()) {
            findings.notApplicable(
                "%s: the driver shows nothing; see dcb pfc show and mlnx_qos"
                    .formatted(port.where()));
          } else if (on) {
            findings.ok("%s reacts to congestion".formatted(port.where()), all);
          } else {
            findings.warning(
                "%s does not react to congestion".formatted(port.where()),
                "RoCE loses packets where many send to one, and each loss costs a time-out",
                "turn ECN on for the priority of RDMA, and flow control (PFC) for it on every"
                    + " switch; choose the priority with -o rdma.traffic-class",
                all);
          }
        });
  }

  static void losses(Machine machine, Findings out) {
    eachPort(
        machine,
        out,
        false,
        (port, findings) -> {
          List<Evidence> evidence = new ArrayList<>();
          count(machine, port.folder() + "/hw_counters", LOSSES, evidence);
          count(machine, port.folder() + "/counters", LINK_FAULTS, evidence);
          if (evidence.isEmpty()) {
            findings.ok("%s has lost nothing since it started".formatted(port.where()));
          } else {
            findings.warning(
                "%s has lost packets since it started".formatted(port.where()),
                "each lost packet stops its queue pair for a time-out; numbers that still grow"
                    + " matter",
                "look twice; if they grow: cable and switch port for link errors, ECN and flow"
                    + " control for the others",
                evidence.toArray(Evidence[]::new));
          }
        });
  }

  private static void count(
      Machine machine, String folder, Set<String> names, List<Evidence> evidence) {
    for (String name : machine.list(folder)) {
      if (names.contains(name)) {
        Reading counter = machine.read(folder + "/" + name);
        if (counter.number().orElse(0) > 0) {
          evidence.add(counter.evidence());
        }
      }
    }
  }

  static void locality(Machine machine, Findings out) {
    List<String> nodes = machine.list("/sys/devices/system/node", "node[0-9]+");
    List<String> adapters = machine.adapters();
    if (adapters.isEmpty()) {
      out.notApplicable("no RDMA adapter");
      return;
    }
    if (nodes.size() < 2) {
      out.ok("one memory node", new Evidence("/sys/devices/system/node", nodes.toString()));
      return;
    }
    BitSet allowed =
        CpuList.of(machine.read("/proc/self/status").after("Cpus_allowed_list:").orElse(""));
    boolean near = false;
    List<Evidence> evidence = new ArrayList<>();
    evidence.add(machine.read("/proc/self/status").evidence("Cpus_allowed_list:"));
    for (String adapter : adapters) {
      Reading node = machine.read(adapter + "/device/numa_node");
      evidence.add(node.evidence());
      if (node.number().orElse(-1) < 0) {
        out.warning(
            "the firmware does not say which node %s is on".formatted(name(adapter)),
            "ranks can't be placed beside it: half of the traffic may cross between sockets",
            "update the firmware, or place ranks by hand: numactl, and -o rdma.device=…",
            node.evidence());
        near = true;
        continue;
      }
      BitSet cpus =
          CpuList.of(
              machine.read("/sys/devices/system/node/node" + node.value() + "/cpulist").value());
      near |= allowed.isEmpty() || allowed.intersects(cpus);
    }
    Evidence[] all = evidence.toArray(Evidence[]::new);
    if (!near) {
      out.warning(
          "this process runs on no node that has an adapter",
          "everything sent crosses between sockets",
          "bind ranks near an adapter: numactl --cpunodebind, mpirun --map-by numa",
          all);
    } else {
      out.ok(
          "%d adapters; a rank takes the one at its number modulo their count"
              .formatted(adapters.size()),
          all);
    }
  }
}
