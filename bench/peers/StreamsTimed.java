import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.WindowStore;

/**
 * Tumbling windows over payments, or payments joined with refunds, from topics to a topic, on two threads with RocksDB;
 * exactly once. Records have their time as their timestamp.
 *
 * <p>Ends after a number of records and prints when a part of them, and when all had been processed.
 */
public final class StreamsTimed {
    private static final LongAdder SEEN = new LongAdder();
    private static final ObjectReader READER = new ObjectMapper().readerFor(Map.class);

    public static void main(String[] given) throws Exception {
        String servers = given[0], kind = given[1], output = given[2], folder = given[3];
        long commitMs = Long.parseLong(given[4]), warm = Long.parseLong(given[5]), records = Long.parseLong(given[6]);
        Duration size = Duration.ofMillis(Long.parseLong(given[7])), grace = Duration.ofMillis(Long.parseLong(given[8]));
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, output);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, folder);
        settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.MAX_TASK_IDLE_MS_CONFIG, 1000L);
        if (commitMs > 0) {
            settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, commitMs);
        }
        settings.put(StreamsConfig.producerPrefix("compression.type"), "lz4");
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        StreamsBuilder builder = new StreamsBuilder();
        if (kind.equals("join")) {
            join(builder, output, size, grace);
        } else {
            windows(builder, output, size, grace);
        }
        try (KafkaStreams streams = new KafkaStreams(builder.build(), settings)) {
            streams.setUncaughtExceptionHandler((Throwable error) -> {
                error.printStackTrace();
                Runtime.getRuntime().halt(1);
                return null;
            });
            streams.start();
            long began = 0, before = 0;
            while (SEEN.sum() < records) {
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

    private static KStream<String, byte[]> topic(StreamsBuilder builder, String name) {
        return builder.stream(name, Consumed.with(Serdes.String(), Serdes.ByteArray())).peek((key, value) -> SEEN.increment());
    }

    private static void windows(StreamsBuilder builder, String output, Duration size, Duration grace) {
        Materialized<String, long[], WindowStore<Bytes, byte[]>> store = Materialized.with(Serdes.String(), pairs());
        topic(builder, "payments")
            .groupByKey()
            .windowedBy(TimeWindows.ofSizeAndGrace(size, grace))
            .aggregate(() -> new long[2], (key, value, sums) -> new long[] {sums[0] + 1, sums[1] + number(value, "amount")},
                store)
            .toStream()
            .map((key, sums) -> KeyValue.pair(
                key.key() + "@" + key.window().start(), text("{\"n\":" + sums[0] + ",\"total\":" + sums[1] + "}")))
            .to(output, Produced.with(Serdes.String(), Serdes.ByteArray()));
    }

    private static void join(StreamsBuilder builder, String output, Duration within, Duration grace) {
        topic(builder, "payments")
            .join(topic(builder, "refunds"), (payment, refund) -> text(
                    "{\"amount\":" + number(payment, "amount") + ",\"refund\":" + number(refund, "refund") + "}"),
                JoinWindows.ofTimeDifferenceAndGrace(within, grace),
                StreamJoined.with(Serdes.String(), Serdes.ByteArray(), Serdes.ByteArray()))
            .to(output, Produced.with(Serdes.String(), Serdes.ByteArray()));
    }

    private static byte[] text(String value) {
        return value.getBytes(StandardCharsets.UTF_8);
    }

    private static long number(byte[] value, String name) {
        try {
            Map<String, Object> row = READER.readValue(value);
            return ((Number) row.get(name)).longValue();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
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
