package org.mkernel.runtime;

import java.io.IOException;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import org.mkernel.api.Failure;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.Topology;

/**
 * Writes Chrome trace events, which Perfetto reads: a process per rank, a row per lane, a wait as
 * an event of its own before its task. Times are microseconds. For the runtime and the simulator.
 */
public final class TraceEvents {
  private final Writer out;
  private boolean any;

  private TraceEvents(Writer out) {
    this.out = out;
  }

  /** Writes events, one after another. */
  @FunctionalInterface
  public interface Body {
    /**
     * Writes them.
     *
     * @param events where to
     * @throws IOException when they can't be written
     */
    void write(TraceEvents events) throws IOException;
  }

  /**
   * Writes a file.
   *
   * @param file where to
   * @param topology the ranks
   * @param body writes the events
   * @throws UnavailableException when the file can't be written
   */
  public static void write(Path file, Topology topology, Body body) {
    try (Writer out = Files.newBufferedWriter(file)) {
      TraceEvents events = new TraceEvents(out);
      out.write("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
      for (int r = 0; r < topology.size(); r++) {
        events.event(
            "{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":\"rank %d on node %d\"}}"
                .formatted(r, r, topology.node(r)));
      }
      body.write(events);
      out.write("\n]}\n");
    } catch (IOException e) {
      throw new UnavailableException(
          "the trace could not be written to %s: %s".formatted(file, e),
          Failure.remedy("choose a file in a folder that is writable and has room"),
          e);
    }
  }

  private void event(String text) throws IOException {
    if (any) {
      out.write(",\n");
    }
    any = true;
    out.write(text);
  }

  /**
   * Writes a task and, if it waited, its wait.
   *
   * @param schedule whose task it is
   * @param rank its rank
   * @param lane its lane
   * @param task its number on the rank
   * @param epoch its epoch
   * @param claimed when a lane claimed it, in microseconds
   * @param ready when its waits were met
   * @param done when it was done
   * @throws IOException when it can't be written
   */
  public void task(
      Schedule schedule,
      int rank,
      int lane,
      int task,
      long epoch,
      double claimed,
      double ready,
      double done)
      throws IOException {
    String name = schedule.describe(rank, task);
    if (ready > claimed) {
      event(span(rank, lane, epoch, claimed, ready, "wait", "wait: " + name));
    }
    event(span(rank, lane, epoch, ready, done, schedule.rank(rank).kind(task).name(), name));
  }

  /**
   * Writes a transfer of the proxy. Transfers overlap, so they are asynchronous events.
   *
   * @param schedule whose task it is
   * @param rank its rank
   * @param task its number on the rank
   * @param epoch its epoch
   * @param id a number of its own in this file
   * @param taken when its command was taken, in microseconds
   * @param posted when the transport took it
   * @param done when it was complete
   * @throws IOException when it can't be written
   */
  public void transfer(
      Schedule schedule,
      int rank,
      int task,
      long epoch,
      int id,
      double taken,
      double posted,
      double done)
      throws IOException {
    String name = schedule.describe(rank, task);
    if (posted > taken) {
      event(side("b", rank, epoch, id, taken, "wait", "wait: " + name));
      event(side("e", rank, epoch, id, posted, "wait", "wait: " + name));
    }
    String kind = schedule.rank(rank).kind(task).name();
    event(side("b", rank, epoch, id, posted, kind, name));
    event(side("e", rank, epoch, id, done, kind, name));
  }

  private static String span(
      int rank, int lane, long epoch, double from, double to, String category, String name) {
    return "{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"cat\":\"%s\",\"name\":\"%s\",\"args\":{\"epoch\":%d}}"
        .formatted(rank, lane, from, to - from, category, name, epoch);
  }

  private static String side(
      String phase, int rank, long epoch, int id, double time, String category, String name) {
    return "{\"ph\":\"%s\",\"pid\":%d,\"tid\":0,\"id\":%d,\"ts\":%.3f,\"cat\":\"proxy %s\",\"name\":\"proxy: %s\",\"args\":{\"epoch\":%d}}"
        .formatted(phase, rank, id, time, category, name, epoch);
  }
}
