package org.mkernel.api;

import java.util.Map;

record GenericCollective(String operator, Map<String, Tensor> operands, Map<String, String> options)
    implements Collective {}
