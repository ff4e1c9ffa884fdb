package org.mkernel.api.spi;

import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import org.mkernel.api.DType;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.Topology;

/**
 * An operator: its parameters, its operands, its planner, its reference and its byte model. A
 * provider starts no thread and touches no device.
 */
public interface CollectiveProvider {
  /**
   * The operator.
   *
   * @return lower case, digits and hyphens, as {@code all-gather-gemm}
   */
  String name();

  /**
   * What it computes.
   *
   * @return one line
   */
  String description();

  /**
   * The sizes it needs and what they mean.
   *
   * @return by name, in the order to show
   */
  Map<String, String> sizes();

  /**
   * The options it understands, tuning included.
   *
   * @return in the order to show
   */
  List<OptionSpec> options();

  /**
   * What one rank passed to {@code prepare}.
   *
   * @param operands the shapes of its tensors by operand name
   * @param options its options
   */
  record Request(Map<String, Shape> operands, Map<String, String> options) {
    /** Copies the maps. */
    public Request {
      operands = Map.copyOf(operands);
      options = Map.copyOf(options);
    }
  }

  /**
   * A tensor's shape.
   *
   * @param dtype type of its elements
   * @param rows rows
   * @param columns columns
   */
  record Shape(DType dtype, long rows, long columns) {
    @Override
    public String toString() {
      return dtype.label() + " " + rows + " x " + columns;
    }
  }

  /**
   * Finds out what problem the ranks ask for together.
   *
   * @param topology the ranks
   * @param requests by rank
   * @return the problem
   * @throws org.mkernel.api.MismatchException when ranks do not agree; it names them
   * @throws org.mkernel.api.UsageException when they agree on something that cannot be
   */
  Problem problem(Topology topology, List<Request> requests);

  /**
   * The operands.
   *
   * @param problem the problem
   * @return inputs first, then outputs
   * @throws org.mkernel.api.UsageException when a size or an option is bad
   */
  List<OperandSpec> operands(Problem problem);

  /**
   * Where the first operand of a rank lies when it shares memory with the last one, its output, and
   * the result is right all the same. Operands overlap in no other way with an output.
   *
   * @param problem the problem
   * @param rank the rank
   * @return bytes from where the last operand starts; empty where none can be done in place
   */
  default OptionalLong inPlace(Problem problem, int rank) {
    return OptionalLong.empty();
  }

  /**
   * Plans. A pure function: equal problems give equal schedules, on any machine.
   *
   * @param problem the problem
   * @return the schedule of all ranks
   * @throws org.mkernel.api.UsageException when a size or an option is bad
   */
  Schedule plan(Problem problem);

  /**
   * The fewest payload bytes that must cross between nodes, all ranks together.
   *
   * @param problem the problem
   * @return bytes
   */
  long interNodeBytes(Problem problem);

  /**
   * Floating-point operations of all ranks, 2 for each multiply-add.
   *
   * @param problem the problem
   * @return operations, 0 for an operator that only moves
   */
  double flops(Problem problem);

  /**
   * What is right, in double precision.
   *
   * @param problem the problem
   * @param inputs where inputs are read
   * @return rows of the outputs
   */
  Reference reference(Problem problem, Inputs inputs);

  /** Reads inputs. */
  interface Inputs {
    /**
     * Reads a row of what one rank holds.
     *
     * @param rank the rank
     * @param operand the operand
     * @param row the row, from 0 in the rank's shard
     * @param out receives one value per column
     */
    void row(int rank, String operand, long row, double[] out);
  }

  /** Says what outputs must be. Safe for use by several threads. */
  interface Reference {
    /**
     * Computes a row of what one rank must hold.
     *
     * @param rank the rank
     * @param operand the output
     * @param row the row, from 0 in the rank's shard
     * @param values receives the exact results, before rounding to the operand's type
     * @param magnitudes receives for each the sum of the magnitudes that were added: what a bound
     *     on rounding errors is proportional to
     */
    void row(int rank, String operand, long row, double[] values, double[] magnitudes);

    /**
     * What rounding may do to a result before it is rounded to the operand's type.
     *
     * @return the largest error as a multiple of its magnitude, 0 for operators that only move
     */
    default double roundOff() {
      return 0;
    }
  }
}
