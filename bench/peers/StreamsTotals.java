import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Number and sum of payments by the records' key, from topic to topic, on two threads with RocksDB.
 *
 * <p>With a number of records it ends after them and prints when a part of them, and when all had been processed; with 0
 * it goes on until it is killed. A last number is that of an edited version, which gives one customer in so many a bonus.
 */
public final class StreamsTotals {
    /** What a record holds. */
    public record Payment(String customer, long amount) {}

    private static final LongAdder SEEN = new LongAdder();

    public static void main(String[] given) throws Exception {
        String servers = given[0], input = given[1], output = given[2], folder = given[3], guarantee = given[4];
        long cache = Long.parseLong(given[5]), commitMs = Long.parseLong(given[6]);
        long warm = Long.parseLong(given[7]), records = Long.parseLong(given[8]);
        long edit = given.length > 9 ? Long.parseLong(given[9]) : 0;
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, output);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, folder);
        settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, cache);
        if (commitMs > 0) {
            settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, commitMs);
        }
        settings.put(StreamsConfig.producerPrefix("compression.type"), "lz4");
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        try (KafkaStreams streams = new KafkaStreams(topology(input, output, edit).build(), settings)) {
            streams.setUncaughtExceptionHandler((Throwable error) -> {
                error.printStackTrace();
                Runtime.getRuntime().halt(1);
                return null;
            });
            streams.start();
            long began = 0, before = 0;
            while (records == 0 || SEEN.sum() < records) {
                Thread.sleep(10);
                if (began == 0 && SEEN.sum() >= warm) {
                    before = SEEN.sum();
                    began = System.currentTimeMillis();
                }
            }
            streams.close(); // commits, and writes what the cache holds
            System.out.printf(
                "{\"began\": %d, \"ended\": %d, \"records\": %d}%n", began, System.currentTimeMillis(), records - before);
        }
    }

    private static StreamsBuilder topology(String input, String output, long edit) {
        ObjectReader reader = new ObjectMapper().readerFor(Payment.class);
        StreamsBuilder builder = new StreamsBuilder();
        Materialized<String, long[], KeyValueStore<Bytes, byte[]>> store = Materialized.with(Serdes.String(), pairs());
        builder.stream(input, Consumed.with(Serdes.String(), Serdes.ByteArray()))
            .groupByKey()
            .aggregate(() -> new long[2], (key, value, sums) -> {
                SEEN.increment();
                return new long[] {sums[0] + 1, sums[1] + amount(reader, value) + bonus(key, edit)};
            }, store)
            .toStream()
            .mapValues(StreamsTotals::json)
            .to(output, Produced.with(Serdes.String(), Serdes.ByteArray()));
        return builder;
    }

    /** What an edit gives to one customer in so many. */
    private static long bonus(String key, long edit) {
        return edit > 0 && Long.parseLong(key.substring(4)) % edit == 0 ? edit : 0;
    }

    private static long amount(ObjectReader reader, byte[] value) {
        try {
            Payment payment = reader.readValue(value);
            return payment.amount();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static byte[] json(long[] sums) {
        return ("{\"n\":" + sums[0] + ",\"total\":" + sums[1] + "}").getBytes(StandardCharsets.UTF_8);
    }

    private static Serde<long[]> pairs() {
        return Serdes.serdeFrom(
            (topic, sums) -> sums == null ? null : ByteBuffer.allocate(16).putLong(sums[0]).putLong(sums[1]).array(),
            (topic, bytes) -> {
                if (bytes == null) {
                    return null;
                }
                ByteBuffer buffer = ByteBuffer.wrap(bytes);
                return new long[] {buffer.getLong(), buffer.getLong()};
            });
    }
}
