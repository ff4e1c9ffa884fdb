package org.mkernel.collectives;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.mkernel.api.Activation;
import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.OptionSpec;
import org.mkernel.api.spi.Problem;

/** What providers of operators with a product share: their options and buffers. */
abstract class GemmOperator extends Operator {
  private static final List<String> BOOLEAN = List.of("false", "true");
  private static final OptionSpec TRANSPOSE_B =
      new OptionSpec("transpose-b", "B is n x k", "false", BOOLEAN);
  private static final OptionSpec BIAS =
      new OptionSpec("bias", "a row is added to each row of C", "false", BOOLEAN);
  private static final OptionSpec EPILOGUE =
      new OptionSpec(
          "epilogue",
          "function applied to each element of C",
          "none",
          List.of("none", "relu", "gelu", "silu"));

  GemmOperator(
      String name, String description, Map<String, String> sizes, List<OptionSpec> further) {
    super(name, description, sizes, options(further));
  }

  private static List<OptionSpec> options(List<OptionSpec> further) {
    List<OptionSpec> options = new ArrayList<>(List.of(TRANSPOSE_B, BIAS, EPILOGUE));
    options.addAll(further);
    options.addAll(List.of(Tuning.CHUNK_ROWS, Tuning.TILE_ROWS, Tuning.TILE_COLUMNS));
    return List.copyOf(options);
  }

  static boolean transposed(Problem problem) {
    return problem.option(TRANSPOSE_B.name(), "false").equals("true");
  }

  static boolean biased(Problem problem) {
    return problem.option(BIAS.name(), "false").equals("true");
  }

  static Activation activation(Problem problem) {
    return Activation.of(problem.option(EPILOGUE.name(), "none"));
  }

  /** The columns of B, which may be transposed. */
  static long columnsOfB(Requests requests) {
    Shape b = requests.shape(0, "b");
    return requests.options().getOrDefault(TRANSPOSE_B.name(), "false").equals("true")
        ? b.rows()
        : b.columns();
  }

  /**
   * The numbers of buffers.
   *
   * @param a of A
   * @param b of B
   * @param bias of the bias, −1 without one
   * @param c of C
   */
  record Buffers(int a, int b, int bias, int c) {}

  static Buffers declare(List<OperandSpec> operands, Problem problem, ScheduleBuilder builder) {
    return new Buffers(
        Operands.declare(operands.get(0), problem, builder),
        Operands.declare(operands.get(1), problem, builder),
        biased(problem) ? Operands.declare(operands.get(2), problem, builder) : -1,
        Operands.declare(operands.getLast(), problem, builder));
  }

  @Override
  public double flops(Problem problem) {
    return 2.0
        * problem.size("m")
        * problem.size("n")
        * problem.size("k")
        * problem.topology().size();
  }
}
