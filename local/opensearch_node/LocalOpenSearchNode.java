import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.opensearch.Version;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.plugins.Plugin;
import org.opensearch.plugins.PluginInfo;

/**
 * One OpenSearch node in this process. Every argument is one setting, written {@code name=value}; the caller
 * decides them all and learns by HTTP when the node is ready. Ends in good order on SIGTERM.
 */
public final class LocalOpenSearchNode {

    /** The modules a distribution would bring that this project's mappings and queries use, and k-NN. */
    private static final List<String> PLUGINS = List.of(
        "org.opensearch.transport.Netty4ModulePlugin",
        "org.opensearch.analysis.common.CommonAnalysisModulePlugin",
        "org.opensearch.index.reindex.ReindexModulePlugin",
        "org.opensearch.index.mapper.MapperExtrasModulePlugin",
        "org.opensearch.knn.plugin.KNNPlugin"
    );

    private LocalOpenSearchNode() {}

    public static void main(String[] arguments) throws Exception {
        Settings settings = settingsFrom(arguments);
        Path configuration = Path.of(settings.get("path.home")).resolve("config");
        Files.createDirectories(configuration);
        Environment environment = InternalSettingsPreparer.prepareEnvironment(
            settings, Map.of(), configuration, () -> settings.get("node.name"));

        CountDownLatch ended = new CountDownLatch(1);
        Node node = new EmbeddedNode(environment, plugins());
        Runtime.getRuntime().addShutdownHook(new Thread(() -> close(node, ended), "close-node"));
        node.start();
        ended.await();
    }

    private static Settings settingsFrom(String[] arguments) {
        Settings.Builder builder = Settings.builder();
        for (String argument : arguments) {
            int separator = argument.indexOf('=');
            if (separator < 1) {
                throw new IllegalArgumentException("not of the form name=value: " + argument);
            }
            builder.put(argument.substring(0, separator), argument.substring(separator + 1));
        }
        return builder.build();
    }

    private static Collection<PluginInfo> plugins() throws ClassNotFoundException {
        List<PluginInfo> infos = new ArrayList<>();
        for (String name : PLUGINS) {
            String className = Class.forName(name).asSubclass(Plugin.class).getName();
            infos.add(new PluginInfo(
                className, "on the class path", "local", Version.CURRENT, "21", className, null, List.of(), false));
        }
        return infos;
    }

    private static void close(Node node, CountDownLatch ended) {
        try {
            node.close();
        } catch (Exception failure) {
            System.err.println("the node did not close in good order: " + failure);
        } finally {
            ended.countDown();
        }
    }

    /** A node that takes its plug-ins from the class path instead of a plug-in folder. */
    private static final class EmbeddedNode extends Node {
        EmbeddedNode(Environment environment, Collection<PluginInfo> plugins) {
            super(environment, plugins, true);
        }
    }
}
