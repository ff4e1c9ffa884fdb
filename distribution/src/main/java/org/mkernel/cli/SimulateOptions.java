package org.mkernel.cli;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.check.HostCalibration;
import org.mkernel.check.Machine;
import org.mkernel.check.Simulation;
import org.mkernel.check.Simulator;
import picocli.CommandLine.Option;

/** What {@code mkernel plan} asks a simulator. */
final class SimulateOptions {
  @Option(names = "--simulate", description = "predict its time on a model of a machine")
  boolean simulate;

  @Option(
      names = "--machine",
      description = "with --simulate: h200, or host to measure this one (default h200)",
      paramLabel = "NAME")
  String machine = "h200";

  @Option(
      names = "--bandwidth",
      description = "with --simulate: bytes per second of a rank between nodes, 0 for no limit",
      paramLabel = "BYTES")
  @Nullable Double bandwidth;

  @Option(
      names = "--latency",
      description = "with --simulate: nanoseconds between nodes",
      paramLabel = "NANOS")
  @Nullable Double latency;

  @Option(
      names = "--lanes",
      description = "with --simulate: lanes of a role",
      paramLabel = "ROLE=N")
  Map<String, Integer> lanes = new LinkedHashMap<>();

  @Option(
      names = "--epochs",
      description = "with --simulate: launches back to back (default ${DEFAULT-VALUE})",
      paramLabel = "N")
  int epochs = 3;

  @Option(names = "--json", description = "with --simulate: one JSON document")
  boolean json;

  @Option(
      names = "--trace",
      description = "with --simulate: write the timeline for Perfetto",
      paramLabel = "FILE")
  @Nullable Path trace;

  /** Refuses what means nothing without {@code --simulate}. */
  void check() {
    if (!simulate && (json || trace != null || bandwidth != null || latency != null)) {
      throw new UsageException(
          "--json, --trace, --bandwidth and --latency belong to --simulate; add it");
    }
  }

  Simulation run(Schedule schedule) {
    Machine model =
        switch (machine) {
          case "h200" -> Machine.h200();
          case "host" -> HostCalibration.measure(schedule);
          default ->
              throw new UsageException(
                  "--machine is \"%s\"; allowed are h200 and host".formatted(machine));
        };
    if (bandwidth != null || latency != null) {
      model =
          model.withWire(
              bandwidth == null ? model.wire().sendBytesPerSecond() : bandwidth,
              latency == null ? model.wire().latencyNanos() : latency);
    }
    for (Map.Entry<String, Integer> role : lanes.entrySet()) {
      model = model.withLanes(role.getKey(), role.getValue());
    }
    Simulation simulation = Simulator.simulate(schedule, model, epochs);
    if (trace != null) {
      simulation.writeTrace(trace);
    }
    return simulation;
  }
}
