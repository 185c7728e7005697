-- SET NAMES with COLLATE had no effect on literals. LatsDB: (1). Right: (0). Mended.
SET NAMES utf8mb4 COLLATE utf8mb4_bin;
SELECT 'a' = 'A';
