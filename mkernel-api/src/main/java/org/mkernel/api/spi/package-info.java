/**
 * What plug-ins implement, found with {@link java.util.ServiceLoader}: collectives, transports,
 * devices and kernel sets. Providers have a public constructor without parameters, do no work in
 * it, and answer {@code availability()} as a value. Incubating: it may change until more operators
 * and devices run through it.
 */
@NullMarked
package org.mkernel.api.spi;

import org.jspecify.annotations.NullMarked;
