-- The columns of information_schema as MariaDB 10.11 has them: names, types and collations.

create table SCHEMATA (
  `CATALOG_NAME` varchar(512) collate utf8mb3_general_ci,
  `SCHEMA_NAME` varchar(64) collate utf8mb3_general_ci,
  `DEFAULT_CHARACTER_SET_NAME` varchar(32) collate utf8mb3_general_ci,
  `DEFAULT_COLLATION_NAME` varchar(64) collate utf8mb3_general_ci,
  `SQL_PATH` varchar(512) collate utf8mb3_general_ci,
  `SCHEMA_COMMENT` varchar(1024) collate utf8mb3_general_ci
);

create table TABLES (
  `TABLE_CATALOG` varchar(512) collate utf8mb3_general_ci,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_general_ci,
  `TABLE_NAME` varchar(64) collate utf8mb3_general_ci,
  `TABLE_TYPE` varchar(64) collate utf8mb3_general_ci,
  `ENGINE` varchar(64) collate utf8mb3_general_ci,
  `VERSION` bigint(21) unsigned,
  `ROW_FORMAT` varchar(10) collate utf8mb3_general_ci,
  `TABLE_ROWS` bigint(21) unsigned,
  `AVG_ROW_LENGTH` bigint(21) unsigned,
  `DATA_LENGTH` bigint(21) unsigned,
  `MAX_DATA_LENGTH` bigint(21) unsigned,
  `INDEX_LENGTH` bigint(21) unsigned,
  `DATA_FREE` bigint(21) unsigned,
  `AUTO_INCREMENT` bigint(21) unsigned,
  `CREATE_TIME` datetime,
  `UPDATE_TIME` datetime,
  `CHECK_TIME` datetime,
  `TABLE_COLLATION` varchar(64) collate utf8mb3_general_ci,
  `CHECKSUM` bigint(21) unsigned,
  `CREATE_OPTIONS` varchar(2048) collate utf8mb3_general_ci,
  `TABLE_COMMENT` varchar(2048) collate utf8mb3_general_ci,
  `MAX_INDEX_LENGTH` bigint(21) unsigned,
  `TEMPORARY` varchar(1) collate utf8mb3_general_ci
);

create table COLUMNS (
  `TABLE_CATALOG` varchar(512) collate utf8mb3_general_ci,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_general_ci,
  `TABLE_NAME` varchar(64) collate utf8mb3_general_ci,
  `COLUMN_NAME` varchar(64) collate utf8mb3_general_ci,
  `ORDINAL_POSITION` bigint(21) unsigned,
  `COLUMN_DEFAULT` longtext collate utf8mb3_general_ci,
  `IS_NULLABLE` varchar(3) collate utf8mb3_general_ci,
  `DATA_TYPE` varchar(64) collate utf8mb3_general_ci,
  `CHARACTER_MAXIMUM_LENGTH` bigint(21) unsigned,
  `CHARACTER_OCTET_LENGTH` bigint(21) unsigned,
  `NUMERIC_PRECISION` bigint(21) unsigned,
  `NUMERIC_SCALE` bigint(21) unsigned,
  `DATETIME_PRECISION` bigint(21) unsigned,
  `CHARACTER_SET_NAME` varchar(32) collate utf8mb3_general_ci,
  `COLLATION_NAME` varchar(64) collate utf8mb3_general_ci,
  `COLUMN_TYPE` longtext collate utf8mb3_general_ci,
  `COLUMN_KEY` varchar(3) collate utf8mb3_general_ci,
  `EXTRA` varchar(80) collate utf8mb3_general_ci,
  `PRIVILEGES` varchar(80) collate utf8mb3_general_ci,
  `COLUMN_COMMENT` varchar(1024) collate utf8mb3_general_ci,
  `IS_GENERATED` varchar(6) collate utf8mb3_general_ci,
  `GENERATION_EXPRESSION` longtext collate utf8mb3_general_ci
);

create table STATISTICS (
  `TABLE_CATALOG` varchar(512) collate utf8mb3_general_ci,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_general_ci,
  `TABLE_NAME` varchar(64) collate utf8mb3_general_ci,
  `NON_UNIQUE` bigint(1),
  `INDEX_SCHEMA` varchar(64) collate utf8mb3_general_ci,
  `INDEX_NAME` varchar(64) collate utf8mb3_general_ci,
  `SEQ_IN_INDEX` int(2) unsigned,
  `COLUMN_NAME` varchar(64) collate utf8mb3_general_ci,
  `COLLATION` varchar(1) collate utf8mb3_general_ci,
  `CARDINALITY` bigint(21),
  `SUB_PART` bigint(3),
  `PACKED` varchar(10) collate utf8mb3_general_ci,
  `NULLABLE` varchar(3) collate utf8mb3_general_ci,
  `INDEX_TYPE` varchar(16) collate utf8mb3_general_ci,
  `COMMENT` varchar(16) collate utf8mb3_general_ci,
  `INDEX_COMMENT` varchar(1024) collate utf8mb3_general_ci,
  `IGNORED` varchar(3) collate utf8mb3_general_ci
);

create table KEY_COLUMN_USAGE (
  `CONSTRAINT_CATALOG` varchar(512) collate utf8mb3_general_ci,
  `CONSTRAINT_SCHEMA` varchar(64) collate utf8mb3_general_ci,
  `CONSTRAINT_NAME` varchar(64) collate utf8mb3_general_ci,
  `TABLE_CATALOG` varchar(512) collate utf8mb3_general_ci,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_general_ci,
  `TABLE_NAME` varchar(64) collate utf8mb3_general_ci,
  `COLUMN_NAME` varchar(64) collate utf8mb3_general_ci,
  `ORDINAL_POSITION` bigint(10),
  `POSITION_IN_UNIQUE_CONSTRAINT` bigint(10),
  `REFERENCED_TABLE_SCHEMA` varchar(64) collate utf8mb3_general_ci,
  `REFERENCED_TABLE_NAME` varchar(64) collate utf8mb3_general_ci,
  `REFERENCED_COLUMN_NAME` varchar(64) collate utf8mb3_general_ci
);

create table TABLE_CONSTRAINTS (
  `CONSTRAINT_CATALOG` varchar(512) collate utf8mb3_general_ci,
  `CONSTRAINT_SCHEMA` varchar(64) collate utf8mb3_general_ci,
  `CONSTRAINT_NAME` varchar(64) collate utf8mb3_general_ci,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_general_ci,
  `TABLE_NAME` varchar(64) collate utf8mb3_general_ci,
  `CONSTRAINT_TYPE` varchar(64) collate utf8mb3_general_ci
);

create table REFERENTIAL_CONSTRAINTS (
  `CONSTRAINT_CATALOG` varchar(512) collate utf8mb3_general_ci,
  `CONSTRAINT_SCHEMA` varchar(64) collate utf8mb3_general_ci,
  `CONSTRAINT_NAME` varchar(64) collate utf8mb3_general_ci,
  `UNIQUE_CONSTRAINT_CATALOG` varchar(512) collate utf8mb3_general_ci,
  `UNIQUE_CONSTRAINT_SCHEMA` varchar(64) collate utf8mb3_general_ci,
  `UNIQUE_CONSTRAINT_NAME` varchar(64) collate utf8mb3_general_ci,
  `MATCH_OPTION` varchar(64) collate utf8mb3_general_ci,
  `UPDATE_RULE` varchar(64) collate utf8mb3_general_ci,
  `DELETE_RULE` varchar(64) collate utf8mb3_general_ci,
  `TABLE_NAME` varchar(64) collate utf8mb3_general_ci,
  `REFERENCED_TABLE_NAME` varchar(64) collate utf8mb3_general_ci
);

create table PARTITIONS (
  `TABLE_CATALOG` varchar(512) collate utf8mb3_general_ci,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_general_ci,
  `TABLE_NAME` varchar(64) collate utf8mb3_general_ci,
  `PARTITION_NAME` varchar(64) collate utf8mb3_general_ci,
  `SUBPARTITION_NAME` varchar(64) collate utf8mb3_general_ci,
  `PARTITION_ORDINAL_POSITION` bigint(21) unsigned,
  `SUBPARTITION_ORDINAL_POSITION` bigint(21) unsigned,
  `PARTITION_METHOD` varchar(18) collate utf8mb3_general_ci,
  `SUBPARTITION_METHOD` varchar(12) collate utf8mb3_general_ci,
  `PARTITION_EXPRESSION` longtext collate utf8mb3_general_ci,
  `SUBPARTITION_EXPRESSION` longtext collate utf8mb3_general_ci,
  `PARTITION_DESCRIPTION` longtext collate utf8mb3_general_ci,
  `TABLE_ROWS` bigint(21) unsigned,
  `AVG_ROW_LENGTH` bigint(21) unsigned,
  `DATA_LENGTH` bigint(21) unsigned,
  `MAX_DATA_LENGTH` bigint(21) unsigned,
  `INDEX_LENGTH` bigint(21) unsigned,
  `DATA_FREE` bigint(21) unsigned,
  `CREATE_TIME` datetime,
  `UPDATE_TIME` datetime,
  `CHECK_TIME` datetime,
  `CHECKSUM` bigint(21) unsigned,
  `PARTITION_COMMENT` varchar(80) collate utf8mb3_general_ci,
  `NODEGROUP` varchar(12) collate utf8mb3_general_ci,
  `TABLESPACE_NAME` varchar(64) collate utf8mb3_general_ci
);

create table CHECK_CONSTRAINTS (
  `CONSTRAINT_CATALOG` varchar(512) collate utf8mb3_general_ci,
  `CONSTRAINT_SCHEMA` varchar(64) collate utf8mb3_general_ci,
  `TABLE_NAME` varchar(64) collate utf8mb3_general_ci,
  `CONSTRAINT_NAME` varchar(64) collate utf8mb3_general_ci,
  `LEVEL` varchar(6) collate utf8mb3_general_ci,
  `CHECK_CLAUSE` longtext collate utf8mb3_general_ci
);

create table VIEWS (
  `TABLE_CATALOG` varchar(512) collate utf8mb3_general_ci,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_general_ci,
  `TABLE_NAME` varchar(64) collate utf8mb3_general_ci,
  `VIEW_DEFINITION` longtext collate utf8mb3_general_ci,
  `CHECK_OPTION` varchar(8) collate utf8mb3_general_ci,
  `IS_UPDATABLE` varchar(3) collate utf8mb3_general_ci,
  `DEFINER` varchar(384) collate utf8mb3_general_ci,
  `SECURITY_TYPE` varchar(7) collate utf8mb3_general_ci,
  `CHARACTER_SET_CLIENT` varchar(32) collate utf8mb3_general_ci,
  `COLLATION_CONNECTION` varchar(64) collate utf8mb3_general_ci,
  `ALGORITHM` varchar(10) collate utf8mb3_general_ci
);

create table CHARACTER_SETS (
  `CHARACTER_SET_NAME` varchar(32) collate utf8mb3_general_ci,
  `DEFAULT_COLLATE_NAME` varchar(64) collate utf8mb3_general_ci,
  `DESCRIPTION` varchar(60) collate utf8mb3_general_ci,
  `MAXLEN` bigint(3)
);

create table COLLATIONS (
  `COLLATION_NAME` varchar(64) collate utf8mb3_general_ci,
  `CHARACTER_SET_NAME` varchar(32) collate utf8mb3_general_ci,
  `ID` bigint(11),
  `IS_DEFAULT` varchar(3) collate utf8mb3_general_ci,
  `IS_COMPILED` varchar(3) collate utf8mb3_general_ci,
  `SORTLEN` bigint(3)
);

create table COLLATION_CHARACTER_SET_APPLICABILITY (
  `COLLATION_NAME` varchar(64) collate utf8mb3_general_ci,
  `CHARACTER_SET_NAME` varchar(32) collate utf8mb3_general_ci,
  `FULL_COLLATION_NAME` varchar(64) collate utf8mb3_general_ci,
  `ID` bigint(11),
  `IS_DEFAULT` varchar(3) collate utf8mb3_general_ci
);

create table ENGINES (
  `ENGINE` varchar(64) collate utf8mb3_general_ci,
  `SUPPORT` varchar(8) collate utf8mb3_general_ci,
  `COMMENT` varchar(160) collate utf8mb3_general_ci,
  `TRANSACTIONS` varchar(3) collate utf8mb3_general_ci,
  `XA` varchar(3) collate utf8mb3_general_ci,
  `SAVEPOINTS` varchar(3) collate utf8mb3_general_ci
);
