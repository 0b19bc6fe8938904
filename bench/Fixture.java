import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import jakarta.servlet.Servlet;
import org.eclipse.jetty.compression.gzip.GzipCompression;
import org.eclipse.jetty.compression.server.CompressionHandler;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/**
 * Iceberg's own REST reference server on loopback. Its main() listens on every interface and has no option for that,
 * so this builds the same servlet with the same handlers; what is not public there is reached by reflection.
 * Run as a single file: java -cp ... Fixture.java PORT. The catalog is configured by CATALOG_... variables.
 */
public class Fixture {
  public static void main(String[] args) throws Exception {
    String in = "org.apache.iceberg.rest.";
    Constructor<?> make = Class.forName(in + "RESTCatalogServer").getDeclaredConstructor();
    make.setAccessible(true);
    Object reference = make.newInstance();
    Method backend = reference.getClass().getDeclaredMethod("initializeBackendCatalog");
    backend.setAccessible(true);
    Object context = backend.invoke(reference);
    Constructor<?> adapt = Class.forName(in + "RESTServerCatalogAdapter").getDeclaredConstructor(context.getClass());
    adapt.setAccessible(true);
    Object adapter = adapt.newInstance(context);
    Constructor<?> serve = Class.forName(in + "RESTCatalogServlet").getDeclaredConstructor(Class.forName(in + "RESTCatalogAdapter"));
    serve.setAccessible(true);

    ServletContextHandler handler = new ServletContextHandler(ServletContextHandler.NO_SESSIONS);
    handler.addServlet(new ServletHolder((Servlet) serve.newInstance(adapter)), "/*");
    CompressionHandler compression = new CompressionHandler();
    compression.putCompression(new GzipCompression());
    handler.insertHandler(compression);
    Server server = new Server();
    ServerConnector connector = new ServerConnector(server);
    connector.setHost("127.0.0.1");
    connector.setPort(Integer.parseInt(args[0]));
    server.addConnector(connector);
    server.setHandler(handler);
    server.start();
    server.join();
  }
}
