/**
 * The checker, which proves a schedule before anything runs it. It reads schedules and nothing
 * else: no device, no transport and no clock belongs here.
 */
@NullMarked
package org.mkernel.check;

import org.jspecify.annotations.NullMarked;
