import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HexFormat;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.kstream.SessionWindowedDeserializer;
import org.apache.kafka.streams.kstream.SessionWindowedSerializer;
import org.apache.kafka.streams.kstream.TimeWindowedDeserializer;
import org.apache.kafka.streams.kstream.TimeWindowedSerializer;
import org.apache.kafka.streams.kstream.Windowed;

/**
 * Reads keys of windows in hexadecimal digits with Kafka Streams' own deserialisers. Of each it prints group, start, end,
 * and the bytes that Kafka Streams' own serialisers make of these.
 */
public final class WindowedKeys {
    public static void main(String[] given) throws Exception {
        boolean sessions = given[0].equals("sessions");
        HexFormat hex = HexFormat.of();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            byte[] key = hex.parseHex(line);
            Windowed<String> read;
            byte[] written;
            if (sessions) {
                read = new SessionWindowedDeserializer<>(Serdes.String().deserializer()).deserialize("t", key);
                written = new SessionWindowedSerializer<>(Serdes.String().serializer()).serialize("t", read);
            } else {
                long size = Long.parseLong(given[0]);
                read = new TimeWindowedDeserializer<>(Serdes.String().deserializer(), size).deserialize("t", key);
                written = new TimeWindowedSerializer<>(Serdes.String().serializer()).serialize("t", read);
            }
            String bounds = read.window().start() + "\t" + read.window().end();
            System.out.println(read.key() + "\t" + bounds + "\t" + hex.formatHex(written));
        }
    }
}
