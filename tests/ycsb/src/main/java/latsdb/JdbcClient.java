package latsdb;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.Vector;
import java.util.concurrent.atomic.AtomicInteger;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;
import site.ycsb.StringByteIterator;

/**
 * YCSB over JDBC with server-side prepared statements. Temporary errors are tried again, and a lost
 * connection is opened again to the next of the URLs in {@code db.url}, which blanks separate.
 */
public class JdbcClient extends DB {
  /** A node that was removed has started again by then, also on a busy machine. */
  private static final long PATIENCE_MILLIS = 60_000;
  private static final int PAUSE_MILLIS = 10;
  private static final int PAUSE_MILLIS_MAX = 200;
  private static final int DUPLICATE = 1062;
  private static final AtomicInteger CLIENTS = new AtomicInteger();
  private final Map<String, PreparedStatement> statements = new HashMap<>();
  private String[] urls;
  private int url;
  private Connection connection;

  @Override
  public void init() throws DBException {
    urls = getProperties().getProperty("db.url").trim().split("\\s+");
    url = CLIENTS.getAndIncrement() % urls.length;
    // Whatever keeps every operation from working shall be said once, and at once.
    SQLException last = null;
    for (int tried = 0; tried < urls.length && connection == null; tried++) {
      try {
        connection = DriverManager.getConnection(urls[url]);
      } catch (SQLException e) {
        last = e;
        url = (url + 1) % urls.length;
      }
    }
    if (connection == null) {
      throw new DBException(last);
    }
  }

  @Override
  public void cleanup() throws DBException {
    try {
      if (connection != null) {
        connection.close();
      }
    } catch (SQLException e) {
      throw new DBException(e);
    }
  }

  private interface Work {
    /** One attempt; {@code unsure} if an earlier one may have had its effect. */
    Status run(boolean unsure) throws SQLException;
  }

  private Status attempt(Work work) {
    boolean unsure = false;
    long end = System.currentTimeMillis() + PATIENCE_MILLIS;
    for (int attempt = 1; ; attempt++) {
      try {
        if (connection == null) {
          connection = DriverManager.getConnection(urls[url]);
        }
        return work.run(unsure);
      } catch (SQLException e) {
        boolean lost = isLost(e);
        if (!(lost || isTemporary(e)) || System.currentTimeMillis() > end || !pause(attempt)) {
          System.err.println("YCSB: " + e.getErrorCode() + " (" + e.getSQLState() + ") " + e.getMessage());
          return Status.ERROR;
        }
        // 50029 is said of a commit whose outcome nobody knows, with the state 08007; 50038 of one whose answer is lost.
        unsure |= lost || e.getErrorCode() == 50038;
        if (lost) {
          forget();
        }
      }
    }
  }

  private static boolean isLost(SQLException e) {
    return e.getSQLState() != null && e.getSQLState().startsWith("08");
  }

  private static boolean isTemporary(SQLException e) {
    int number = e.getErrorCode();
    return number == 1205 || number == 1213 || number == 1297 || number == 50038 || "40001".equals(e.getSQLState());
  }

  /** Waits before the next attempt, longer each time; false if the thread shall end. */
  private static boolean pause(int attempt) {
    try {
      Thread.sleep(Math.min((long) PAUSE_MILLIS * attempt, PAUSE_MILLIS_MAX));
      return true;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  /** The connection is gone: the next attempt opens one to the next URL. */
  private void forget() {
    statements.clear();
    try {
      if (connection != null) {
        connection.close();
      }
    } catch (SQLException e) {
      // It is gone already.
    }
    connection = null;
    url = (url + 1) % urls.length;
  }

  private PreparedStatement prepare(String sql) throws SQLException {
    PreparedStatement known = statements.get(sql);
    if (known == null) {
      known = connection.prepareStatement(sql);
      statements.put(sql, known);
    }
    return known;
  }

  private static String columns(Set<String> fields) {
    return fields == null ? "*" : String.join(", ", fields);
  }

  private static void take(ResultSet row, Set<String> fields, Map<String, ByteIterator> result) throws SQLException {
    if (fields == null) {
      for (int i = 2; i <= row.getMetaData().getColumnCount(); i++) {
        result.put(row.getMetaData().getColumnName(i).toLowerCase(), new StringByteIterator(row.getString(i)));
      }
      return;
    }
    for (String field : fields) {
      result.put(field, new StringByteIterator(row.getString(field)));
    }
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    return attempt(unsure -> {
      PreparedStatement read = prepare("SELECT " + columns(fields) + " FROM " + table + " WHERE ycsb_key = ?");
      read.setString(1, key);
      try (ResultSet rows = read.executeQuery()) {
        if (!rows.next()) {
          return Status.NOT_FOUND;
        }
        take(rows, fields, result);
        return Status.OK;
      }
    });
  }

  @Override
  public Status scan(String table, String from, int count, Set<String> fields,
      Vector<HashMap<String, ByteIterator>> result) {
    return attempt(unsure -> {
      PreparedStatement scan = prepare("SELECT " + columns(fields) + " FROM " + table
          + " WHERE ycsb_key >= ? ORDER BY ycsb_key LIMIT ?");
      scan.setString(1, from);
      scan.setInt(2, count);
      try (ResultSet rows = scan.executeQuery()) {
        result.clear();
        while (rows.next()) {
          HashMap<String, ByteIterator> row = new HashMap<>();
          take(rows, fields, row);
          result.add(row);
        }
      }
      return Status.OK;
    });
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    Map<String, String> sorted = strings(values);
    return attempt(unsure -> {
      String set = String.join(" = ?, ", sorted.keySet()) + " = ?";
      PreparedStatement update = prepare("UPDATE " + table + " SET " + set + " WHERE ycsb_key = ?");
      int at = 1;
      for (String value : sorted.values()) {
        update.setString(at++, value);
      }
      update.setString(at, key);
      return update.executeUpdate() == 1 ? Status.OK : Status.UNEXPECTED_STATE;
    });
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    Map<String, String> sorted = strings(values);
    return attempt(unsure -> {
      List<String> marks = new ArrayList<>();
      sorted.keySet().forEach(name -> marks.add("?"));
      PreparedStatement insert = prepare("INSERT INTO " + table + " (ycsb_key, " + String.join(", ", sorted.keySet())
          + ") VALUES (?, " + String.join(", ", marks) + ")");
      insert.setString(1, key);
      int at = 2;
      for (String value : sorted.values()) {
        insert.setString(at++, value);
      }
      try {
        return insert.executeUpdate() == 1 ? Status.OK : Status.UNEXPECTED_STATE;
      } catch (SQLException e) {
        if (unsure && e.getErrorCode() == DUPLICATE) {
          return Status.OK;
        }
        throw e;
      }
    });
  }

  @Override
  public Status delete(String table, String key) {
    return attempt(unsure -> {
      PreparedStatement delete = prepare("DELETE FROM " + table + " WHERE ycsb_key = ?");
      delete.setString(1, key);
      return delete.executeUpdate() == 1 || unsure ? Status.OK : Status.UNEXPECTED_STATE;
    });
  }

  /** The values as strings, in one order, so that equal sets of columns give equal statements. */
  private static Map<String, String> strings(Map<String, ByteIterator> values) {
    Map<String, String> sorted = new TreeMap<>();
    values.forEach((name, value) -> sorted.put(name, value.toString()));
    return sorted;
  }
}
