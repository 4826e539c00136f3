/** Java's clients and tools against a broker: the argument names the scenario. Ends with 0 when everything held. */
public final class Interop {
    public static void main(String[] arguments) throws Exception {
        int code = 0;
        try {
            run(arguments[0]);
        } catch (Throwable e) {
            e.printStackTrace();
            code = 1;
        }
        // Whatever a tool has left running ends with this.
        Runtime.getRuntime().halt(code);
    }

    private static void run(String scenario) throws Exception {
        switch (scenario) {
            case "stream" -> Groups.stream();
            case "group_range" -> Groups.group("partition.assignment.strategy",
                "org.apache.kafka.clients.consumer.RangeAssignor");
            case "group_cooperative" -> Groups.group("partition.assignment.strategy",
                "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
            case "group_consumer" -> Groups.group("group.protocol", "consumer");
            case "transactions" -> Transactions.copyExactlyOnce();
            case "fencing" -> Transactions.fencing();
            case "not_offered" -> NotOffered.all();
            case "tools_topics" -> AdminTools.topics();
            case "tools_groups" -> AdminTools.groups();
            case "tools_data" -> DataTools.all();
            case "word_count" -> WordCount.exactlyOnce();
            default -> throw new IllegalArgumentException("there is no scenario " + scenario);
        }
    }
}
