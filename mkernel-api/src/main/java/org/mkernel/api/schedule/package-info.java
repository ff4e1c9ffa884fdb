/**
 * The model of a schedule: pools of tasks tied by signals, over all ranks of a world. A planner
 * writes one with {@link org.mkernel.api.schedule.ScheduleBuilder}; a checker proves it; executors
 * run it. Incubating: it may change until more operators run through it.
 *
 * <p>The contract in short. A <em>signal</em> is a 64-bit word that only grows. A <em>flag</em> has
 * one raiser and its value is the epoch; a <em>counter</em> is raised by adds of tasks of one rank
 * and waited for at its full count. A <em>put</em> happens before what waits, at its destination,
 * on that put's own signal, and before nothing else; its {@code done} signal says only that the
 * source may be reused. Order inside a pool is the order of claims, not happens-before.
 */
@NullMarked
package org.mkernel.api.schedule;

import org.jspecify.annotations.NullMarked;
