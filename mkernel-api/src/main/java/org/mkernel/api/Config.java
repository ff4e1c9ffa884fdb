package org.mkernel.api;

import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import org.mkernel.api.spi.Exchange;

/**
 * Settings. Immutable: each method returns a changed copy. The same setting has one name
 * everywhere: {@code deadline} is {@link #deadline}, the option {@code --deadline} and the variable
 * {@code MKERNEL_DEADLINE}.
 */
public final class Config {
  private static final String PREFIX = "MKERNEL_";

  private final Map<String, String> options;
  private final ThreadFactory threads;
  private final Optional<Exchange> exchange;

  private Config(Map<String, String> options, ThreadFactory threads, Optional<Exchange> exchange) {
    this.options = Map.copyOf(options);
    this.threads = threads;
    this.exchange = exchange;
  }

  /**
   * The defaults.
   *
   * @return settings that read no environment
   */
  public static Config defaults() {
    return new Config(Map.of(), Executors.defaultThreadFactory(), Optional.empty());
  }

  /**
   * The defaults, changed by every variable that starts with {@code MKERNEL_}.
   *
   * @return settings from the environment of this process
   */
  public static Config fromEnvironment() {
    return from(System.getenv());
  }

  /**
   * As {@link #fromEnvironment}, from a given environment: {@code MKERNEL_WAIT_NANOS} is the option
   * {@code wait-nanos}; a double underscore is a dot.
   *
   * @param environment variables
   * @return settings
   */
  public static Config from(Map<String, String> environment) {
    Map<String, String> options = new HashMap<>();
    environment.forEach((name, value) -> {
      if (name.startsWith(PREFIX)) {
        options.put(
            name.substring(PREFIX.length())
                .toLowerCase(Locale.ROOT)
                .replace("__", ".")
                .replace('_', '-'),
            value);
      }
    });
    return new Config(options, defaults().threads, Optional.empty());
  }

  /**
   * Sets an option by name.
   *
   * @param name in kebab case; options of a transport start with its name and a dot
   * @param value its value
   * @return a changed copy
   */
  public Config option(String name, String value) {
    Map<String, String> changed = new HashMap<>(options);
    changed.put(name, value);
    return new Config(changed, threads, exchange);
  }

  /**
   * An option.
   *
   * @param name its name
   * @return its value, if it was set
   */
  public Optional<String> option(String name) {
    return Optional.ofNullable(options.get(name));
  }

  /**
   * All options that were set.
   *
   * @return by name
   */
  public Map<String, String> options() {
    return options;
  }

  /**
   * Sets the folder of plug-ins: each sub-folder of jars becomes a module layer of its own.
   *
   * @param folder the folder, not writable by everybody
   * @return a changed copy
   */
  public Config plugins(Path folder) {
    return option("plugins", folder.toString());
  }

  /**
   * Sets how long one wait on the data path may take before the operation fails; 30 s unless set.
   *
   * @param deadline more than zero
   * @return a changed copy
   */
  public Config deadline(Duration deadline) {
    if (deadline.isNegative() || deadline.isZero()) {
      throw new UsageException("deadline is %s; it must be more than zero".formatted(deadline));
    }
    return option("deadline", Double.toString(deadline.toNanos() / 1e9));
  }

  /**
   * How long one wait on the data path may take.
   *
   * @return the deadline
   * @throws UsageException when the option {@code deadline} is no number of seconds above zero
   */
  public Duration deadline() {
    String text = options.getOrDefault("deadline", "30");
    try {
      double seconds = Double.parseDouble(text);
      if (seconds > 0 && seconds <= 86400 * 365.0) {
        return Duration.ofNanos((long) Math.max(1, seconds * 1e9));
      }
    } catch (NumberFormatException e) {
      // Reported below, with the text.
    }
    throw new UsageException(
        "deadline is \"%s\"; seconds are needed, more than 0 and at most a year".formatted(text));
  }

  /**
   * Sets what makes threads: lanes, proxies, rank threads.
   *
   * @param factory the factory
   * @return a changed copy
   */
  public Config threads(ThreadFactory factory) {
    return new Config(options, factory, exchange);
  }

  /**
   * What makes threads.
   *
   * @return the factory
   */
  public ThreadFactory threads() {
    return threads;
  }

  /**
   * Sets how ranks find one another, in place of a launcher: their number, their count and where
   * they meet come from it. {@link MKernel#join} calls it twice, one call after the other, on a
   * thread of its own and for no longer than the option {@code join-deadline} (60 s unless set),
   * and nobody calls it afterwards. It must carry at least 16 KiB from each rank. It carries a
   * secret: nobody but the ranks may read what goes through it.
   *
   * @param own the exchange, alike on all ranks
   * @return a changed copy
   */
  public Config exchange(Exchange own) {
    return new Config(options, threads, Optional.of(own));
  }

  /**
   * How ranks find one another in place of a launcher.
   *
   * @return the exchange, if one was set
   */
  public Optional<Exchange> exchange() {
    return exchange;
  }
}
