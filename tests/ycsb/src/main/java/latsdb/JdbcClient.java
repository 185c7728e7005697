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
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;
import site.ycsb.StringByteIterator;

/** YCSB over JDBC with server-side prepared statements. Temporary errors are tried again. */
public class JdbcClient extends DB {
  private static final int TRIES = 20;
  private final Map<String, PreparedStatement> statements = new HashMap<>();
  private Connection connection;

  @Override
  public void init() throws DBException {
    try {
      connection = DriverManager.getConnection(getProperties().getProperty("db.url"));
    } catch (SQLException e) {
      throw new DBException(e);
    }
  }

  @Override
  public void cleanup() throws DBException {
    try {
      connection.close();
    } catch (SQLException e) {
      throw new DBException(e);
    }
  }

  private interface Work {
    Status run() throws SQLException;
  }

  private Status attempt(Work work) {
    for (int attempt = 1; ; attempt++) {
      try {
        return work.run();
      } catch (SQLException e) {
        boolean temporary = e.getErrorCode() == 1205 || e.getErrorCode() == 1213 || e.getErrorCode() == 1297;
        if (!temporary || attempt == TRIES) {
          System.err.println("YCSB: " + e.getErrorCode() + " " + e.getMessage());
          return Status.ERROR;
        }
      }
    }
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
    return attempt(() -> {
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
    return attempt(() -> {
      PreparedStatement scan = prepare("SELECT " + columns(fields) + " FROM " + table
          + " WHERE ycsb_key >= ? ORDER BY ycsb_key LIMIT ?");
      scan.setString(1, from);
      scan.setInt(2, count);
      try (ResultSet rows = scan.executeQuery()) {
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
    return attempt(() -> {
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
    return attempt(() -> {
      List<String> marks = new ArrayList<>();
      sorted.keySet().forEach(name -> marks.add("?"));
      PreparedStatement insert = prepare("INSERT INTO " + table + " (ycsb_key, " + String.join(", ", sorted.keySet())
          + ") VALUES (?, " + String.join(", ", marks) + ")");
      insert.setString(1, key);
      int at = 2;
      for (String value : sorted.values()) {
        insert.setString(at++, value);
      }
      return insert.executeUpdate() == 1 ? Status.OK : Status.UNEXPECTED_STATE;
    });
  }

  @Override
  public Status delete(String table, String key) {
    return attempt(() -> {
      PreparedStatement delete = prepare("DELETE FROM " + table + " WHERE ycsb_key = ?");
      delete.setString(1, key);
      return delete.executeUpdate() == 1 ? Status.OK : Status.UNEXPECTED_STATE;
    });
  }

  /** The values as strings, in one order, so that equal sets of columns give equal statements. */
  private static Map<String, String> strings(Map<String, ByteIterator> values) {
    Map<String, String> sorted = new TreeMap<>();
    values.forEach((name, value) -> sorted.put(name, value.toString()));
    return sorted;
  }
}
