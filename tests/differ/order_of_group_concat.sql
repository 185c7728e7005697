-- A negative number in the order of GROUP_CONCAT is a constant. LatsDB: error 1054. Right: (1). Mended.
SELECT GROUP_CONCAT(1 ORDER BY -7);
