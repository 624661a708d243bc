import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;

/**
 * Runs main classes one after another in one process, which has Kafka's classes loaded: Runner.
 *
 * Reads a line for each, words in base64 with spaces between them (a directory of more classes, which may be empty, the
 * main class, its arguments), and answers with one: the exit code, and what went to standard output and error in
 * base64. The source is the same for all releases.
 */
public class Runner {
    /** What a program ends with, by Kafka's own Exit. */
    private static final class Ended extends Error {
        final int code;

        Ended(int code) {
            super("exit " + code, null, false, false);
            this.code = code;
        }
    }

    /** A stream whose target changes: Scala's Console keeps the System.out that it has met first. */
    private static final class Switched extends OutputStream {
        private ByteArrayOutputStream target = new ByteArrayOutputStream();

        synchronized String take() {
            byte[] written = target.toByteArray();
            target = new ByteArrayOutputStream();
            return Base64.getEncoder().encodeToString(written);
        }

        @Override
        public synchronized void write(int one) {
            target.write(one);
        }

        @Override
        public synchronized void write(byte[] some, int offset, int length) {
            target.write(some, offset, length);
        }
    }

    /** Kafka 4.4 has moved it. */
    private static Class<?> exitClass() throws ClassNotFoundException {
        try {
            return Class.forName("org.apache.kafka.common.utils.Exit");
        } catch (ClassNotFoundException moved) {
            return Class.forName("org.apache.kafka.common.utils.internals.Exit");
        }
    }

    /** Whatever Kafka would end the process with ends the program instead. */
    private static void keepRunning() throws ReflectiveOperationException {
        Class<?> exit = exitClass();
        Class<?> procedure = Class.forName(exit.getName() + "$Procedure");
        Object ended = Proxy.newProxyInstance(Runner.class.getClassLoader(), new Class<?>[] {procedure}, (a, b, words) -> {
            throw new Ended((Integer) words[0]);
        });
        exit.getMethod("setExitProcedure", procedure).invoke(null, ended);
        exit.getMethod("setHaltProcedure", procedure).invoke(null, ended);
    }

    /** Classes of the directory are new each time, with nothing of the last time in them. */
    private static int run(String[] words) throws IOException {
        URL[] more = words[0].isEmpty() ? new URL[0] : new URL[] {new File(words[0]).toURI().toURL()};
        try (URLClassLoader loader = new URLClassLoader(more, Runner.class.getClassLoader())) {
            Object args = Arrays.copyOfRange(words, 2, words.length);
            loader.loadClass(words[1]).getMethod("main", String[].class).invoke(null, args);
            return 0;
        } catch (InvocationTargetException thrown) {
            if (thrown.getCause() instanceof Ended) {
                return ((Ended) thrown.getCause()).code;
            }
            thrown.getCause().printStackTrace();
            return 1;
        } catch (ReflectiveOperationException thrown) {
            thrown.printStackTrace();
            return 1;
        }
    }

    private static void serve(InputStream requests, PrintStream answers) throws Exception {
        Switched out = new Switched();
        Switched err = new Switched();
        System.setIn(InputStream.nullInputStream());
        System.setOut(new PrintStream(out, true, "UTF-8"));
        System.setErr(new PrintStream(err, true, "UTF-8"));
        keepRunning();
        BufferedReader in = new BufferedReader(new InputStreamReader(requests, StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", -1);
            for (int i = 0; i < words.length; i++) {
                words[i] = new String(Base64.getDecoder().decode(words[i]), StandardCharsets.UTF_8);
            }
            int code = run(words);
            System.out.flush();
            System.err.flush();
            answers.println(code + " " + out.take() + " " + err.take());
            answers.flush();
        }
    }

    public static void main(String[] none) {
        int code = 1;
        try {
            serve(System.in, System.out);
            code = 0;
        } catch (Throwable thrown) {
            thrown.printStackTrace();
        } finally {
            System.exit(code); // whatever threads the programs have left
        }
    }
}
