/** Abstract JUnit suites, one per kind of plug-in, and what they share. */
@NullMarked
package org.mkernel.testkit;

import org.jspecify.annotations.NullMarked;
