-- GROUP BY a column of a derived table or CTE that is an aggregate there. LatsDB: error 1056. Right: (1) each. Mended.
-- A derived table's column is no aggregate of the outer query.
SELECT 1 AS x FROM (SELECT MIN(1) AS y) AS r GROUP BY r.y;
WITH w AS (SELECT AVG(DISTINCT 1) AS y) SELECT 1 AS x FROM w AS r GROUP BY r.y;
