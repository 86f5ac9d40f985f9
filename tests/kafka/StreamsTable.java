import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;

/** Reads a topic as a KTable until it has as many keys as are expected, and prints them. */
public final class StreamsTable {
    public static void main(String[] given) throws Exception {
        String servers = given[0], topic = given[1], folder = given[2];
        int expected = Integer.parseInt(given[3]);
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "table-of-" + topic);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, folder);
        settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        settings.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed");
        StreamsBuilder builder = new StreamsBuilder();
        builder.table(topic, Consumed.with(Serdes.String(), Serdes.String()), Materialized.as("rows"));
        try (KafkaStreams streams = new KafkaStreams(builder.build(), settings)) {
            streams.start();
            long until = System.nanoTime() + Duration.ofSeconds(90).toNanos();
            Map<String, String> before = null;
            while (System.nanoTime() < until) {
                Thread.sleep(500);
                Map<String, String> rows = read(streams);
                // The same twice in a row: a key that is yet to go is not taken for one that stays.
                if (rows.size() == expected && rows.equals(before)) {
                    rows.forEach((key, value) -> System.out.println(key + "\t" + value));
                    return;
                }
                before = rows;
            }
            System.out.println("the table is " + before);
            System.exit(1);
        }
    }

    private static Map<String, String> read(KafkaStreams streams) {
        Map<String, String> rows = new TreeMap<>();
        try {
            ReadOnlyKeyValueStore<String, String> store = streams.store(
                StoreQueryParameters.fromNameAndType("rows", QueryableStoreTypes.<String, String>keyValueStore()));
            try (KeyValueIterator<String, String> all = store.all()) {
                all.forEachRemaining(row -> rows.put(row.key, row.value));
            }
        } catch (InvalidStateStoreException | IllegalStateException notYet) {
            rows.clear();
        }
        return rows;
    }
}
