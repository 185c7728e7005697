-- SET NAMES with COLLATE has no effect on literals. LatsDB: (1). Right: (0).
SET NAMES utf8mb4 COLLATE utf8mb4_bin;
SELECT 'a' = 'A';
