import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.kafka.common.utils.internals.Exit;

/** Kafka's command-line tools, run in this JVM: what they print and the code they would end with. */
final class Tool {
    /** Thrown where a tool would end its process. Some catch it and end again: the first code counts. */
    private static final class Ended extends RuntimeException {
        private static Integer first;

        Ended(int code) {
            super("exit " + code, null, false, false);
            first = first == null ? code : first;
        }
    }

    /** What a run printed, standard error included, and its exit code. */
    record Ran(int code, String said) {
        /** The words of a run that went well and said all of these. */
        String ok(String... words) {
            Rig.ensureEq(code, 0, "the exit code of a tool that said:\n" + said);
            return says(words);
        }

        /** The words of a run that failed and said all of these. */
        String fails(String... words) {
            Rig.ensure(code != 0 || said.contains("Error"), "a tool should have failed; it said:\n" + said);
            return says(words);
        }

        String says(String... words) {
            for (String word : words) {
                Rig.ensure(said.contains(word), "a tool did not say `" + word + "` but:\n" + said);
            }
            return said;
        }
    }

    /** What a tool does at the end of its process: here the process goes on, so that is the end of the run. */
    private static final List<Runnable> HOOKS = new ArrayList<>();

    private Tool() {}

    static {
        Exit.setExitProcedure((code, message) -> {
            throw new Ended(code);
        });
        Exit.setHaltProcedure((code, message) -> {
            throw new Ended(code);
        });
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
    }

    /** Runs a tool with the broker's address before its arguments. */
    static Ran on(String tool, String... arguments) throws Exception {
        String[] all = new String[arguments.length + 2];
        all[0] = "--bootstrap-server";
        all[1] = Rig.BOOTSTRAP;
        System.arraycopy(arguments, 0, all, 2, arguments.length);
        return run(tool, "", all);
    }

    /** Runs a tool with this standard input. */
    static Ran run(String tool, String input, String... arguments) throws Exception {
        PrintStream out = System.out;
        PrintStream err = System.err;
        InputStream in = System.in;
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        PrintStream capture = new PrintStream(said, true, StandardCharsets.UTF_8);
        Ended.first = null;
        try {
            System.setOut(capture);
            System.setErr(capture);
            System.setIn(new ByteArrayInputStream(input.getBytes(StandardCharsets.UTF_8)));
            Class.forName("org.apache.kafka.tools." + tool).getMethod("main", String[].class)
                .invoke(null, (Object) arguments);
        } catch (InvocationTargetException e) {
            if (Ended.first == null) {
                e.getCause().printStackTrace(capture);
                Ended.first = 1;
            }
        } finally {
            HOOKS.forEach(Runnable::run);
            HOOKS.clear();
            System.setOut(out);
            System.setErr(err);
            System.setIn(in);
        }
        // Tools that catch everything print how they were ended here.
        String words = said.toString(StandardCharsets.UTF_8).lines()
            .filter(line -> !line.matches("exit \\d+|Tool.Ended: exit \\d+")).collect(Collectors.joining("\n"));
        return new Ran(Ended.first == null ? 0 : Ended.first, words);
    }

    /**
     * A tool in a JVM of its own, for those that do their last things in hooks of the JVM. It does not outlive two minutes,
     * whatever becomes of this process.
     */
    static Process start(String tool, String... arguments) throws Exception {
        List<String> words = new ArrayList<>(List.of("timeout", "-k", "1", "120", "java"));
        words.addAll(ManagementFactory.getRuntimeMXBean().getInputArguments());
        words.add("org.apache.kafka.tools." + tool);
        words.addAll(List.of(arguments));
        return new ProcessBuilder(words).redirectErrorStream(true).start();
    }

    /** Waits for the end of a tool in a JVM of its own. */
    static Ran ended(Process process) throws Exception {
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return new Ran(process.waitFor(), said);
    }
}
