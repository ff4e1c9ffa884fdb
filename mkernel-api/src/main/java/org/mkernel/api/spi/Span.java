package org.mkernel.api.spi;

/**
 * A run of memory.
 *
 * @param address its start
 * @param bytes its size
 */
public record Span(long address, long bytes) {}
