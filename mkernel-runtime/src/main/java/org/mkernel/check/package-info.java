/**
 * What is known of a schedule before anything runs it: the checker proves it, the simulator
 * predicts its time on a model of a machine. Both read schedules and nothing else: no device, no
 * transport and no clock belongs here.
 */
@NullMarked
package org.mkernel.check;

import org.jspecify.annotations.NullMarked;
