import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;

/**
 * Follows a topic as a KTable or as a GlobalKTable until its input ends. For each line of that it prints the rows, then
 * how many changes have come, which only a KTable knows.
 */
public final class StreamsTable {
    public static void main(String[] given) throws Exception {
        String servers = given[0], topic = given[1], folder = given[2];
        boolean global = given[3].equals("global");
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, given[3] + "-of-" + topic);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, folder);
        settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        // Without a cache every change is passed on, so that they can be counted.
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        settings.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed");
        AtomicInteger changes = new AtomicInteger();
        StreamsBuilder builder = new StreamsBuilder();
        Consumed<String, String> text = Consumed.with(Serdes.String(), Serdes.String());
        Materialized<String, String, KeyValueStore<Bytes, byte[]>> rows = Materialized.as("rows");
        if (global) {
            builder.globalTable(topic, text, rows);
        } else {
            builder.table(topic, text, rows).toStream().foreach((key, value) -> changes.incrementAndGet());
        }
        try (KafkaStreams streams = new KafkaStreams(builder.build(), settings);
                BufferedReader asked = new BufferedReader(new InputStreamReader(System.in))) {
            streams.start();
            while (asked.readLine() != null) {
                read(streams).forEach((key, value) -> System.out.println(key + "\t" + value));
                System.out.println(changes.get());
            }
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
