package org.mkernel.cli;

import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.OptionSpec;
import org.mkernel.api.spi.Problem;

/** All-gather with a reference that is wrong in the first element of each row. */
public final class OffByOne implements CollectiveProvider {
  static final String NAME = "off-by-one";

  private CollectiveProvider real() {
    return ServiceLoader.load(CollectiveProvider.class).stream()
        .filter(provider -> provider.type() != OffByOne.class)
        .map(ServiceLoader.Provider::get)
        .filter(provider -> provider.name().equals("all-gather"))
        .findFirst()
        .orElseThrow();
  }

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public String description() {
    return real().description();
  }

  @Override
  public Map<String, String> sizes() {
    return real().sizes();
  }

  @Override
  public List<OptionSpec> options() {
    return real().options();
  }

  @Override
  public Problem problem(Topology topology, List<Request> requests) {
    return real().problem(topology, requests);
  }

  @Override
  public List<OperandSpec> operands(Problem problem) {
    return real().operands(problem);
  }

  @Override
  public Schedule plan(Problem problem) {
    return real().plan(problem);
  }

  @Override
  public long interNodeBytes(Problem problem) {
    return real().interNodeBytes(problem);
  }

  @Override
  public double flops(Problem problem) {
    return real().flops(problem);
  }

  @Override
  public Reference reference(Problem problem, Inputs inputs) {
    Reference right = real().reference(problem, inputs);
    return (rank, operand, row, values, magnitudes) -> {
      right.row(rank, operand, row, values, magnitudes);
      values[0]++;
    };
  }
}
