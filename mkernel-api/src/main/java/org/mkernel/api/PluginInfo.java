package org.mkernel.api;

/**
 * A provider that was found.
 *
 * @param kind {@code collective}, {@code transport}, {@code device} or {@code kernel set}
 * @param name its name, or its class when it could not be made
 * @param module the module or jar it comes from
 * @param description one line
 * @param availability whether it can be used
 */
public record PluginInfo(
    String kind, String name, String module, String description, Availability availability) {}
