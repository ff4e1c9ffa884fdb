package org.mkernel.collectives;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.OptionSpec;
import org.mkernel.api.spi.Problem;

/** What providers share: what they say of themselves, and how requests and operands are checked. */
abstract class Operator implements CollectiveProvider {
  private final String name;
  private final String description;
  private final Map<String, String> sizes;
  private final List<OptionSpec> options;

  Operator(String name, String description, Map<String, String> sizes, List<OptionSpec> options) {
    this.name = name;
    this.description = description;
    this.sizes = sizes;
    this.options = options;
  }

  /** Sizes and their meanings, in the order given. */
  static Map<String, String> sizes(String... namesAndMeanings) {
    Map<String, String> sizes = new LinkedHashMap<>();
    for (int i = 0; i < namesAndMeanings.length; i += 2) {
      sizes.put(namesAndMeanings[i], namesAndMeanings[i + 1]);
    }
    return sizes;
  }

  /** Finds the sizes in what ranks ask for. What they disagree on is found afterwards. */
  abstract Map<String, Long> sizes(Requests requests);

  /** The operands, inputs first. Options are known and allowed. */
  abstract List<OperandSpec> layout(Problem problem);

  @Override
  public final String name() {
    return name;
  }

  @Override
  public final String description() {
    return description;
  }

  @Override
  public final Map<String, String> sizes() {
    return new LinkedHashMap<>(sizes);
  }

  @Override
  public final List<OptionSpec> options() {
    return options;
  }

  @Override
  public final Problem problem(Topology topology, List<Request> requests) {
    Requests all = new Requests(name, topology, requests);
    Problem problem = new Problem(name, topology, all.dtype(), sizes(all), all.options());
    all.require(operands(problem), problem);
    return problem;
  }

  @Override
  public final List<OperandSpec> operands(Problem problem) {
    Requests.requireOptions(name, problem.options(), options);
    List<OperandSpec> operands = layout(problem);
    Operands.requireAddressable(operands, problem);
    return operands;
  }

  @Override
  public double flops(Problem problem) {
    return 0;
  }
}
